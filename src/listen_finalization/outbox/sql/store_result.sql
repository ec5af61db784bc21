INSERT INTO step_results (job_id, step, chunk, payload) VALUES (?, ?, ?, ?)
ON CONFLICT (job_id, step, chunk) DO UPDATE SET payload = excluded.payload
