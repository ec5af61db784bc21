SELECT
  uid, conversation_id, status, discarded, deleted, content_version, has_content, photo_count,
  finalization_requires_byok, finalization_job_id, finalization_revision,
  finalization_wanted_version, finalization_admitted_at, length(CAST(extra AS BLOB)), structured
FROM conversations
WHERE uid = ? AND conversation_id = ?
