"""What stands beside the project: key servers, their clock, the run lock's Redis."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from email.utils import parsedate_to_datetime

import httpx

from listen_finalization.auth.fetch import Fetch, fetch
from listen_finalization.auth.keyset import parse_keys
from listen_finalization.operate.facts import (
    Blind,
    KeyFacts,
    LockFacts,
    Look,
    ServerTime,
    Unseen,
)
from listen_finalization.operate.probes.reach import Reach


async def look_at_task_keys(reach: Reach) -> Look[KeyFacts]:
    """Fetch the keys of task tokens."""
    return await _keys(reach, reach.settings.google_certs_url)


async def look_at_user_keys(reach: Reach) -> Look[KeyFacts]:
    """Fetch the keys of customer tokens."""
    return await _keys(reach, reach.settings.firebase_certs_url)


async def _keys(reach: Reach, url: str) -> KeyFacts:
    answer = await fetch(reach.client, url, seconds=reach.deadline)
    if isinstance(answer, Fetch):
        return KeyFacts(answer, 0)
    found = len(parse_keys(answer.body))
    return KeyFacts(Fetch.OK if found else Fetch.BAD_DOCUMENT, found)


async def look_at_clock(reach: Reach) -> Look[ServerTime]:
    """Read the clock of the key server of task tokens off its answer, in whole seconds."""
    before = time.time()
    try:
        async with reach.client.stream(
            "GET", reach.settings.google_certs_url, timeout=None
        ) as answer:
            return _told(answer.headers, before, time.time)
    except httpx.HTTPError:
        return Unseen(Blind.UNREACHABLE)


def _told(headers: httpx.Headers, before: float, now: Callable[[], float]) -> Look[ServerTime]:
    """Add the Age of an answer to its Date: a cache keeps the first (RFC 9111, section 4.2.3)."""
    try:
        dated = parsedate_to_datetime(headers["date"]).timestamp()
        age = float(headers.get("age", "0"))
    except (KeyError, TypeError, ValueError):
        return Unseen(Blind.ODD_ANSWER)
    uncertain = 2.0 if age else 1.0
    return ServerTime(dated + age, dated + age + uncertain, before=before, after=now())


async def look_at_run_lock(reach: Reach) -> Look[LockFacts]:
    """Ask the run lock's server for a sign of life."""
    try:
        from redis.asyncio import Redis

        from listen_finalization.runlock.redis import trouble_of
    except ModuleNotFoundError:
        return Unseen(Blind.EXTRA_MISSING)
    client: Redis = Redis.from_url(reach.settings.run_lock_url or "", protocol=2)
    try:
        await client.ping()
    except Exception as fault:  # noqa: BLE001 -- a client may raise anything, and it says an address
        return LockFacts(answered=False, trouble=trouble_of(fault))
    finally:
        with suppress(Exception):
            await client.aclose()
    return LockFacts(answered=True)
