"""Measurements of the embedded stack against bases of the same run: `python -m bench`."""
