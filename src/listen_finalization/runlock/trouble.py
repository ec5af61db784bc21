"""Why a run went on without its lock: one closed list."""

from __future__ import annotations

from enum import StrEnum


class LockTrouble(StrEnum):
    """What the lock server did instead of answering."""

    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed_out"
    REFUSED = "refused"
    LOADING = "loading"
    READ_ONLY = "read_only"
    FULL = "full"
    FAULT = "fault"
    SKIPPED = "skipped"
    """It was in trouble a moment ago and was not asked."""
