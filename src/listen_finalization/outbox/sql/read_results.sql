SELECT step, chunk, payload FROM step_results WHERE job_id = ?
