"""Looking: each probe asks one place and returns facts, or why it could not look."""
