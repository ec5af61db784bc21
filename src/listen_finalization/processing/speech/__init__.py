"""Reading what people said: pure functions from segments to sentences, phrases and findings."""
