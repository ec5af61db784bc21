"""The durable path from the end of a listen session to a finished conversation record."""
