UPDATE conversation_finalization_jobs SET
  schema_version = ?, status = ?, requires_byok = ?, force_process = ?, updated_at = ?,
  dispatched_at = ?, dispatch_generation = ?, lease_epoch = ?, claim_id = ?, leased_at = ?,
  lease_expires_at = ?, content_version = ?, attempt_count = ?, handovers = ?, releases = ?,
  last_task_retry = ?, replay_count = ?, failure_code = ?, outcome = ?, completed_at = ?,
  reconcile_after_at = ?, effects = ?, history = ?
WHERE job_id = ?
  AND status = ? AND dispatch_generation = ? AND lease_epoch = ? AND updated_at = ?
