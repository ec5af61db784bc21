DELETE FROM step_results
WHERE job_id = (
  SELECT finalization_job_id FROM conversations WHERE uid = ? AND conversation_id = ?
)
