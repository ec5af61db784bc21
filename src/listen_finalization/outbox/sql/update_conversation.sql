UPDATE conversations SET
  status = ?, discarded = ?, finalization_requires_byok = ?, finalization_job_id = ?,
  finalization_revision = ?, finalization_wanted_version = ?, finalization_admitted_at = ?
WHERE uid = ? AND conversation_id = ?
