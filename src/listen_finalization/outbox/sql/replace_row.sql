UPDATE records SET value = ?, version = version + 1
WHERE kind = ? AND key = ? AND version = ?
