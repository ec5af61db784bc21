SELECT status, min(created_at) FROM conversation_finalization_jobs
WHERE status IN ('queued', 'leased', 'blocked_byok')
GROUP BY status
