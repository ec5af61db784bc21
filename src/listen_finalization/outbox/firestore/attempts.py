"""Repeating a whole read-decide-commit while its guards fail or the store is away."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from listen_finalization.errors import StoreBusyError, StoreUnavailableError

T = TypeVar("T")

TOTAL = 10.0
"""Seconds after which no attempt starts: with the last attempt's own deadlines at most 20.

A customer waits for an admission; Cloud Run and most clients give up at 30 s and later.
"""

FIRST_WAIT = 0.01
"""Seconds, about one commit: the winner of a race is done when the losers come again."""

LONGEST_WAIT = 1.0
"""Seconds: Firestore sustains one write a second to a document ("Usage and limits")."""

ATTEMPTS = 64
"""Attempts within `TOTAL`; a commit that is refused at once must not spin on."""


async def repeated(attempt: Callable[[int], Awaitable[T]]) -> T:
    """Return what `attempt` returns; it is called with its number, from 0.

    It is called again, after a random and growing wait, when it raises `StoreBusyError` or
    `StoreUnavailableError`. The latter also stands for a commit of unknown outcome, so `attempt`
    must recognise its own work on a fresh read. The last error is raised when time is up.
    """
    end = time.monotonic() + TOTAL
    number = 0
    while True:
        try:
            return await attempt(number)
        except (StoreBusyError, StoreUnavailableError):
            wait = _wait(number)
            number += 1
            if number == ATTEMPTS or time.monotonic() + wait >= end:
                raise
        await asyncio.sleep(wait)


def _wait(number: int) -> float:
    """Return a wait with full jitter: contenders that failed together do not meet again."""
    longest = min(FIRST_WAIT * 2 ** min(number, 16), LONGEST_WAIT)
    return random.uniform(0, longest)  # noqa: S311 -- spreads load, guards nothing
