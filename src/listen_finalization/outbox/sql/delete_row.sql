DELETE FROM records WHERE kind = ? AND key = ?
