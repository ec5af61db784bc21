UPDATE conversations SET structured = r.payload
FROM step_results AS r
WHERE r.job_id = ? AND r.step = 'enrich' AND r.chunk = 0
  AND conversations.uid = ? AND conversations.conversation_id = ?
