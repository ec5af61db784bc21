SELECT content_version, deleted, discarded FROM conversations
WHERE uid = ? AND conversation_id = ?
