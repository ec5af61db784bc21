SELECT
  job_id, dispatch_generation, status, requires_byok, handovers, reconcile_after_at, claim_id
FROM conversation_finalization_jobs
WHERE reconcile_after_at <= ?
ORDER BY reconcile_after_at
LIMIT ?
