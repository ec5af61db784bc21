SELECT max(created_at) FROM conversation_finalization_jobs WHERE status = ?
