SELECT content_version, language, photo_count, finalization_requires_byok,
  calendar_meeting_context
FROM conversations
WHERE uid = ? AND conversation_id = ?
