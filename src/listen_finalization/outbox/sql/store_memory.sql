INSERT INTO memories (uid, memory_id, conversation_id, text, segment_ids, created_at)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (uid, memory_id) DO NOTHING
