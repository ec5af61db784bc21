"""How often one user may ask: a bounded bucket for each, in this process alone."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

PER_MINUTE = 60
"""Finalize calls of one user in one process, by default. Over this, the bucket refills evenly."""

MAX_USERS = 10_000


class RateLimiter:
    """A token bucket per user, kept as the one instant at which it will be full again.

    Bounded: beyond `max_users` the user who has not asked for longest is forgotten, which gives
    that user a full bucket. Several replicas allow as many times the rate.
    """

    def __init__(
        self,
        per_minute: int = PER_MINUTE,
        *,
        max_users: int = MAX_USERS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Allow `per_minute` at once, then one every 60 / `per_minute` seconds."""
        if per_minute < 1 or max_users < 1:
            raise ValueError("per_minute and max_users must be at least 1")
        self._every = 60.0 / per_minute
        self._depth = 60.0 - self._every
        self._max_users = max_users
        self._monotonic = monotonic
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, uid: str) -> float:
        """Take a token and return 0, or take none and return the seconds until there is one."""
        now = self._monotonic()
        full_at = max(self._full_at.pop(uid, now), now)
        wait = full_at - now - self._depth
        # A billionth of a second: rounding must not refuse the last token of a full bucket.
        taken = wait <= 1e-9
        self._full_at[uid] = full_at + self._every if taken else full_at
        if len(self._full_at) > self._max_users:
            self._full_at.popitem(last=False)
        return 0.0 if taken else wait
