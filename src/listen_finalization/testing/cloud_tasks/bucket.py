"""The token bucket that bounds a queue's rate."""

from __future__ import annotations

from listen_finalization.domain.job import SECOND, Instant

_WHOLE = 1 - 1e-6
"""What counts as a token: sums of fractions are not exact in binary."""


class Bucket:
    """Holds up to `burst` tokens and gains `rate` a second; a dispatch takes one.

    Full at the start. A clock that is set back refills nothing.
    """

    def __init__(self, rate: float, burst: int, now: Instant) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._seen = now

    def take(self, now: Instant) -> bool:
        """Take a token, or say that there is none."""
        self._refill(now)
        if self._tokens < _WHOLE:
            return False
        self._tokens -= 1
        return True

    def next_token(self, now: Instant) -> Instant:
        """Return when there is a token, `now` or later."""
        self._refill(now)
        if self._tokens >= _WHOLE:
            return now
        return Instant(now + int((1 - self._tokens) / self._rate * SECOND) + 1)

    def _refill(self, now: Instant) -> None:
        gained = max(0, now - self._seen) / SECOND * self._rate
        self._tokens = min(self._burst, self._tokens + gained)
        self._seen = now
