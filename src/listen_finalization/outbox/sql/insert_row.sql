INSERT INTO records (kind, key, value, version) VALUES (?, ?, ?, 1)
ON CONFLICT (kind, key) DO NOTHING
