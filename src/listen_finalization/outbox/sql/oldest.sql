SELECT kind.value, (
  SELECT min(created_at) FROM conversation_finalization_jobs WHERE status = kind.value
)
FROM json_each('["queued", "leased", "blocked_byok"]') AS kind
