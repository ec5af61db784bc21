"""A clock that only the test moves."""

from __future__ import annotations

from listen_finalization.domain.job import Instant, seconds

START = 1_760_000_000_000_000


class FakeClock:
    """Tells instants for a store; `monotonic` tells the same time in seconds, for loops."""

    def __init__(self, start: int = START) -> None:
        self._now = start

    def __call__(self) -> Instant:
        return Instant(self._now)

    def monotonic(self) -> float:
        return self._now / 1_000_000

    def advance(self, by: float) -> None:
        """Move on by seconds; a negative number is a clock that was set back."""
        self._now += seconds(by)
