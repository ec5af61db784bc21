"""Judging: each check is a row of data, and its judge is a pure function of facts."""
