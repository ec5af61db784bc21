SELECT
  job_id, schema_version, uid, conversation_id, finalization_revision, status, requires_byok,
  force_process, created_at, updated_at, dispatched_at, dispatch_generation, lease_epoch,
  claim_id, leased_at, lease_expires_at, content_version, attempt_count, handovers, releases,
  last_task_retry, replay_count, failure_code, outcome, completed_at, reconcile_after_at,
  effects, history
FROM conversation_finalization_jobs
WHERE status = ? AND (created_at, job_id) < (?, ?)
ORDER BY created_at DESC, job_id DESC
LIMIT ?
