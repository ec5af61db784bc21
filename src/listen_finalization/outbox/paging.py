"""The bounds and cursors of pages, the same on every store."""

from __future__ import annotations

from listen_finalization.errors import ValueRefusedError

MOST_DUE = 10_000
MOST_LISTED = 500
"""Rows of a page at most: of due rows, leases and records, and of listed jobs."""


def refuse_limit(limit: int, most: int = MOST_DUE) -> None:
    """Raise `ValueRefusedError` for a limit that no page has."""
    if not 1 <= limit <= most:
        raise ValueRefusedError


def cursor_behind(created: int, job_id: str) -> str:
    """Return the cursor that continues a list behind this job."""
    return f"{created}.{job_id}"


def place_of(cursor: str) -> tuple[int, str]:
    """Return the creation time and the job id of a cursor.

    Raises `ValueRefusedError` for one whose time no page gave out.
    """
    created, _, job_id = cursor.partition(".")
    if not (created.isascii() and created.isdigit() and len(created) < 19):
        raise ValueRefusedError
    return int(created), job_id
