SELECT
  job_id, dispatch_generation, status, requires_byok, handovers, reconcile_after_at, claim_id
FROM conversation_finalization_jobs
WHERE reconcile_after_at <= ? AND (reconcile_after_at, job_id) > (?, ?)
ORDER BY reconcile_after_at, job_id
LIMIT ?
