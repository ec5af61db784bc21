INSERT INTO segments (
  uid, conversation_id, segment_id, position, speaker, start_seconds, end_seconds, text
) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (uid, conversation_id, segment_id) DO UPDATE SET
  speaker = excluded.speaker, start_seconds = excluded.start_seconds,
  end_seconds = excluded.end_seconds, text = excluded.text
WHERE speaker IS NOT excluded.speaker OR start_seconds IS NOT excluded.start_seconds
  OR end_seconds IS NOT excluded.end_seconds OR text IS NOT excluded.text
