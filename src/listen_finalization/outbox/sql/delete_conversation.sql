UPDATE conversations SET deleted = 1
WHERE uid = ? AND conversation_id = ? AND deleted = 0
