SELECT key, value, version FROM records
WHERE kind = ? AND key >= ? AND key < ?
ORDER BY key
LIMIT ?
