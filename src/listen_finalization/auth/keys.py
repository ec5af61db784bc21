"""Where public keys come from: a key server, or an issuer in this very process."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

import httpx
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from listen_finalization.auth.fetch import Fetch, fetch
from listen_finalization.auth.keyset import parse_keys
from listen_finalization.auth.sources import NoKey
from listen_finalization.errors import ListenFinalizationError

REFRESH_PAUSE = 30.0
"""Seconds between two fetches while keys are held, whoever asks for whatever key."""

COLD_PAUSE = 5.0
"""Seconds between two fetches while no key is held, when every caller gets a 503."""

STALE_LIMIT = 86_400.0
"""Seconds for which keys outlive their freshness while the server cannot be reached."""

RENEW_AT = 0.75
"""The part of its freshness after which a set is renewed in the background, before it is needed."""

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class KeySourceError(ListenFinalizationError):
    """The address of the key server must be https, or http to a loopback host."""


class HttpKeySource:
    """The keys that a server publishes as JWKS or as a certificate map.

    A known key is answered at once while its set is fresh; the renewal begins behind, at RENEW_AT.
    A set that is stale, in a process that was idle, is renewed before it answers: a key that the
    server no longer publishes may have been stolen. An unknown key waits for a fetch, too. One
    fetch serves all waiters, and there is at most one per REFRESH_PAUSE: no memory is kept per
    unknown `kid`, so that a flood of them costs nothing. An answer that holds no usable key counts
    as an outage; then the last good set serves on, at once and up to STALE_LIMIT.
    Belongs to one event loop. The client stays the caller's, who closes it after `aclose`.
    """

    def __init__(
        self,
        url: str,
        client: httpx.AsyncClient,
        *,
        clock: Callable[[], float] = time.monotonic,
        timeout: float = 5.0,
    ) -> None:
        """Raises KeySourceError for an address that a third party could answer for."""
        _demand_trusted(url)
        self._url = url
        self._client = client
        self._clock = clock
        self._timeout = timeout
        self._keys: dict[str, RSAPublicKey] = {}
        self._renew_at = self._fresh_until = self._next_fetch = -math.inf
        self._last: Fetch | None = None
        self._running: asyncio.Task[None] | None = None

    @property
    def last_fetch(self) -> Fetch | None:
        """How the last finished fetch ended, for readiness and metrics; None before the first."""
        return self._last

    async def key(self, kid: str, /) -> RSAPublicKey | NoKey:
        """Return the key; UNAVAILABLE where none fits and the last fetch failed."""
        now = self._clock()
        held = self._held(kid, now)
        stale = now >= self._fresh_until and self._last is Fetch.OK
        if held is None or stale:
            await self.refresh()
            held = self._held(kid, self._clock())
        elif now >= self._renew_at:
            self._start(now)
        if held is not None:
            return held
        return NoKey.UNKNOWN if self._last is Fetch.OK else NoKey.UNAVAILABLE

    async def refresh(self) -> None:
        """Fetch the keys, or join the fetch that runs; does nothing within the pause.

        A caller that is cancelled does not take the fetch with it.
        """
        running = self._start(self._clock())
        if running is not None:
            await asyncio.shield(running)

    async def aclose(self) -> None:
        """End a fetch that runs; may be called again."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    def _held(self, kid: str, now: float) -> RSAPublicKey | None:
        return self._keys.get(kid) if now < self._fresh_until + STALE_LIMIT else None

    def _start(self, now: float) -> asyncio.Task[None] | None:
        if self._running is not None and not self._running.done():
            return self._running
        if now < self._next_fetch:
            return None
        self._running = asyncio.create_task(self._fetch(), name="key-refresh")
        return self._running

    async def _fetch(self) -> None:
        self._last = await self._load()
        self._next_fetch = self._clock() + (REFRESH_PAUSE if self._keys else COLD_PAUSE)

    async def _load(self) -> Fetch:
        answer = await fetch(self._client, self._url, seconds=self._timeout)
        if isinstance(answer, Fetch):
            return answer
        keys = parse_keys(answer.body)
        if not keys:
            return Fetch.BAD_DOCUMENT
        self._keys = keys
        now = self._clock()
        self._fresh_until = now + answer.fresh_for
        self._renew_at = now + RENEW_AT * answer.fresh_for
        return Fetch.OK


def _demand_trusted(url: str) -> None:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        raise KeySourceError from None
    local = parsed.scheme == "http" and parsed.host in _LOOPBACK
    if not parsed.host or parsed.userinfo or not (local or parsed.scheme == "https"):
        raise KeySourceError
