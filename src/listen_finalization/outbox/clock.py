"""The store's clock: wall time anchored in the file, moved on by the machine's boot clock.

Every process that opens the file shares the anchor, so a step of the wall clock, or a process
with a wrong one, moves no lease and hides no row. A new boot anchors again, never behind the
newest row.
"""

from __future__ import annotations

import time
from pathlib import Path

from listen_finalization.domain.job import Instant

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_id() -> str:
    """Name the machine's present boot; without a kernel that does, each open is a boot."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return f"process-{time.time_ns()}"


def boot_micros() -> int:
    return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000


class AnchoredClock:
    """Tells the instants of one anchor: `wall` is what the wall clock showed at `boot`."""

    def __init__(self, wall: int, boot: int) -> None:
        self._offset = wall - boot

    def __call__(self) -> Instant:
        return Instant(self._offset + boot_micros())
