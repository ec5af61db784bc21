SELECT
  job_id, dispatch_generation, status, requires_byok, handovers, reconcile_after_at, claim_id
FROM conversation_finalization_jobs
WHERE status = 'leased'
ORDER BY lease_expires_at, job_id
LIMIT ?
