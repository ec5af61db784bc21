SELECT min(reconcile_after_at) FROM conversation_finalization_jobs
WHERE reconcile_after_at > ?
