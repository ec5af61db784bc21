SELECT content_version, language, photo_count, calendar_meeting_context
FROM conversations
WHERE uid = ? AND conversation_id = ?
