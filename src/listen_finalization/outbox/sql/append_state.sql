SELECT content_version, has_content, deleted, discarded FROM conversations
WHERE uid = ? AND conversation_id = ?
