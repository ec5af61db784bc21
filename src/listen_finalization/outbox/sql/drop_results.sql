DELETE FROM step_results WHERE job_id = ?
