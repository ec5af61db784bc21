DELETE FROM conversation_finalization_jobs WHERE job_id = ? AND dispatch_generation = ? AND lease_epoch = ?
