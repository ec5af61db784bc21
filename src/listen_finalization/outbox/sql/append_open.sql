INSERT INTO conversations (uid, conversation_id, language, created_at)
VALUES (?, ?, ?, ?)
ON CONFLICT (uid, conversation_id) DO NOTHING
