SELECT segment_id, speaker, start_seconds, end_seconds, text FROM segments
WHERE uid = ? AND conversation_id = ?
ORDER BY start_seconds, position
