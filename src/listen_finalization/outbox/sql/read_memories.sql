SELECT text, segment_ids FROM memories
WHERE uid = ? AND conversation_id = ?
ORDER BY created_at, memory_id
