SELECT text FROM segments WHERE uid = ? AND conversation_id = ?
