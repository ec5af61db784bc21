SELECT
  c.uid, c.conversation_id, c.status, c.discarded, c.deleted, c.content_version, c.has_content,
  c.photo_count, c.finalization_requires_byok, c.finalization_job_id, c.finalization_revision,
  c.finalization_wanted_version, c.finalization_admitted_at, length(CAST(c.extra AS BLOB)),
  j.job_id, j.schema_version, j.uid, j.conversation_id, j.finalization_revision, j.status,
  j.requires_byok, j.force_process, j.created_at, j.updated_at, j.dispatched_at,
  j.dispatch_generation, j.lease_epoch, j.claim_id, j.leased_at, j.lease_expires_at,
  j.content_version, j.attempt_count, j.handovers, j.releases, j.last_task_retry,
  j.replay_count, j.failure_code, j.outcome, j.completed_at, j.reconcile_after_at, j.effects,
  j.history
FROM conversations AS c
LEFT JOIN conversation_finalization_jobs AS j ON j.job_id = c.finalization_job_id
WHERE c.uid = ? AND c.conversation_id = ?
