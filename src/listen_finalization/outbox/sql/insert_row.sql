INSERT INTO records (kind, key, value, version) VALUES (?, ?, ?, ?)
ON CONFLICT (kind, key) DO NOTHING
