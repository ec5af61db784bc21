UPDATE conversation_finalization_jobs SET reconcile_after_at = ?
WHERE job_id = ? AND reconcile_after_at = ?
