UPDATE conversations SET
  content_version = ?, has_content = ?, photo_count = photo_count + ?,
  finalization_requires_byok = finalization_requires_byok OR ?, last_segment_at = ?
WHERE uid = ? AND conversation_id = ?
