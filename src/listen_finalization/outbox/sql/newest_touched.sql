SELECT max(updated_at) FROM conversation_finalization_jobs
WHERE status IN ('queued', 'leased', 'blocked_byok', 'dead_letter')
