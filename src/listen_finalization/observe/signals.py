"""What the services tell about themselves: closed event names, bounded codes, no content.

A job id is a hash and may be shown. Exceptions are told by their class alone.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

_LOG = logging.getLogger("listen_finalization")
_encode = json.JSONEncoder().encode


class Event(StrEnum):
    """Every event that is logged and counted."""

    JOB_ADMITTED = "job_admitted"
    ADMISSION_REFUSED = "admission_refused"
    ENQUEUE_FAILED = "enqueue_failed"
    TASK_NOT_CREATED = "task_not_created"
    JOB_CLAIMED = "job_claimed"
    CLAIM_REFUSED = "claim_refused"
    JOB_COMPLETED = "job_completed"
    JOB_FENCED = "job_fenced"
    JOB_FAILED = "job_failed"
    JOB_DEAD_LETTERED = "job_dead_lettered"
    JOB_RELEASED = "job_released"
    OWNERSHIP_LOST = "ownership_lost"
    RENEWAL_FAILED = "renewal_failed"
    STEP_FAULT = "step_fault"
    STEP_OUTLIVED = "step_outlived"
    TOKEN_REFUSED = "token_refused"  # noqa: S105
    BODY_REFUSED = "body_refused"
    RATE_LIMITED = "rate_limited"
    REQUEST_FAULT = "request_fault"
    DELIVERY_FAULT = "delivery_fault"
    ROW_MOVED = "row_moved"
    ROW_SET_ASIDE = "row_set_aside"
    ROUND_DONE = "round_done"
    ROUND_FAILED = "round_failed"
    STORE_FAULT = "store_fault"
    RUN_LOCK_UNSET = "run_lock_unset"
    RUN_LOCK_AWAY = "run_lock_away"
    RUN_LOCK_TAKEN_OVER = "run_lock_taken_over"


class Signals:
    """Counts events by code and writes one JSON log line for each."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[Event, str]] = Counter()

    def emit(
        self,
        event: Event,
        *,
        code: StrEnum | None = None,
        job_id: str | None = None,
        fault: BaseException | None = None,
        level: int = logging.INFO,
        numbers: Mapping[str, int] | None = None,
    ) -> None:
        """Record one event. `fault` is told by its class; `numbers` are counts and sizes."""
        self.counts[event, code or ""] += 1
        if not _LOG.isEnabledFor(level):
            return
        line: dict[str, str | int] = {"event": event}
        if code is not None:
            line["code"] = code
        if job_id is not None:
            line["job_id"] = job_id
        if fault is not None:
            line["fault"] = f"{type(fault).__module__}.{type(fault).__qualname__}"
        text = _encode({**line, **numbers} if numbers else line)
        # Made here, because `Logger.log` walks the stack for a caller that is always this one.
        _LOG.handle(_LOG.makeRecord(_LOG.name, level, __name__, 0, text, (), None))

    def count(self, event: Event, code: str = "") -> int:
        """Return how often an event was emitted with a code (or without one)."""
        return self.counts[event, code]
