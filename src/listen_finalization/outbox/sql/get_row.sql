SELECT value, version FROM records WHERE kind = ? AND key = ?
