"""Looking after a deployment: what is live, against its files and its settings."""
