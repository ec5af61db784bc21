"""Locks as keys of one Redis server: three small scripts, each atomic, each bounded in time."""

from __future__ import annotations

import logging
import time
from asyncio import timeout
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from redis import exceptions
from redis.asyncio import Redis

from listen_finalization.observe.signals import Event, Signals
from listen_finalization.runlock.trouble import LockTrouble

PREFIX = "listen-finalization:run-lock:"
"""What stands before the job id in a key. A job id is a hash and reveals no user."""

TIME_LIMIT = 0.25
"""Seconds for one call, a new connection included. Redis in the same region answers within a few
milliseconds; a run that takes seconds is not worth holding up for longer than this."""

PAUSE = 5.0
"""Seconds for which nobody asks after a failed call: an outage costs all deliveries together one
`TIME_LIMIT` in this time, and at its end the locks are back this soon."""

_TAKE = """
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return false end
return redis.call('GET', KEYS[1])
"""
_REPLACE = """
local seen = redis.call('GET', KEYS[1])
if seen and seen ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
"""
_DROP = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""

_TROUBLES: tuple[tuple[type[Exception], LockTrouble], ...] = (
    (exceptions.BusyLoadingError, LockTrouble.LOADING),
    (exceptions.AuthenticationError, LockTrouble.REFUSED),
    (exceptions.AuthorizationError, LockTrouble.REFUSED),
    (exceptions.NoPermissionError, LockTrouble.REFUSED),
    (exceptions.ReadOnlyError, LockTrouble.READ_ONLY),
    (exceptions.MasterDownError, LockTrouble.READ_ONLY),
    (exceptions.OutOfMemoryError, LockTrouble.FULL),
    (exceptions.TimeoutError, LockTrouble.TIMED_OUT),
    (TimeoutError, LockTrouble.TIMED_OUT),
    (exceptions.ConnectionError, LockTrouble.UNREACHABLE),
    (OSError, LockTrouble.UNREACHABLE),
)


class RedisLocks:
    """Sets, replaces and deletes lock keys; no trouble of the server is ever raised.

    A lock's value is the claim id of its owner, and nothing is replaced or deleted but on sight
    of the value that the caller names. A call in trouble opens a circuit: for `PAUSE` seconds the
    server is not asked, then by one call first.
    """

    def __init__(
        self,
        url: str,
        signals: Signals,
        *,
        ttl: float,
        time_limit: float = TIME_LIMIT,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Connect to nothing yet.

        `url` is redis:// or rediss://; a lock stands for `ttl` seconds if nobody gives it back, and
        a call has `time_limit` seconds.
        """
        self._client: Redis = Redis.from_url(url, protocol=2, socket_keepalive=True)
        self._signals = signals
        self._time_limit = time_limit
        self._ttl = max(1, round(ttl * 1000))
        self._monotonic = monotonic
        self._in_trouble = False
        self._asked_again_at = 0.0

    async def take(self, job_id: str, claim_id: str) -> bytes | None:
        """Take the lock where it is free; return the value of another that holds it, or None."""
        if self._paused():
            self._signals.emit(
                Event.RUN_LOCK_AWAY, code=LockTrouble.SKIPPED, job_id=job_id, level=logging.DEBUG
            )
            return None
        answer = await self._ask(_TAKE, job_id, claim_id, self._ttl)
        held = isinstance(answer, bytes) and answer != claim_id.encode()
        return answer if held else None

    async def replace(self, job_id: str, claim_id: str, *, seen: bytes) -> bool:
        """Take the lock over, if it still has the value that was seen, or none; tell whether."""
        answer: object = await self._ask(_REPLACE, job_id, seen, claim_id, self._ttl)
        return answer == 1

    async def drop(self, job_id: str, claim_id: str) -> bool:
        """Give the lock back, if it is the claim's; tell whether it was.

        What a server in trouble keeps is stale: whoever wants it next takes it over.
        """
        answer: object = None if self._paused() else await self._ask(_DROP, job_id, claim_id)
        return answer == 1

    async def close(self) -> None:
        """Close all connections within the time limit."""
        with suppress(exceptions.RedisError, OSError):
            async with timeout(self._time_limit):
                await self._client.aclose()

    async def _ask(self, script: str, job_id: str, *values: Any) -> Any:
        """Run a script; None, counted, where there is no answer."""
        try:
            async with timeout(self._time_limit):
                answer = await self._client.eval(script, 1, PREFIX + job_id, *values)
        except Exception as fault:  # noqa: BLE001 - a guard stops no run, whatever its client raises
            await self._failed(fault, job_id)
            return None
        self._in_trouble = False
        return answer

    def _paused(self) -> bool:
        """Whether the server is left alone now; the caller that is told no asks for all others."""
        now = self._monotonic()
        if not self._in_trouble:
            return False
        if now < self._asked_again_at:
            return True
        self._asked_again_at = now + PAUSE
        return False

    async def _failed(self, fault: Exception, job_id: str) -> None:
        self._in_trouble = True
        self._asked_again_at = self._monotonic() + PAUSE
        code = trouble_of(fault)
        self._signals.emit(
            Event.RUN_LOCK_AWAY, code=code, job_id=job_id, fault=fault, level=logging.WARNING
        )
        # Idle connections may lead to a server that another has replaced.
        with suppress(exceptions.RedisError, OSError):
            async with timeout(self._time_limit):
                await self._client.connection_pool.disconnect(inuse_connections=False)


def trouble_of(fault: Exception) -> LockTrouble:
    """Return the code of what the client raised: the first line of the table that fits."""
    return next((code for kind, code in _TROUBLES if isinstance(fault, kind)), LockTrouble.FAULT)
