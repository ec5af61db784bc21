UPDATE conversations SET calendar_meeting_context = ?
WHERE uid = ? AND conversation_id = ?
