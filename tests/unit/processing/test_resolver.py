"""The system's resolver: lookups that hang hold up nobody, neither the others nor the exit."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from listen_finalization.processing.network import NameResolutionError, SystemResolver

PATIENCE = 20.0
MOST = 64
"""Lookups that may be under way at once."""
ANSWER = ("192.0.2.7", 443)

_HANGING = """
import asyncio, socket, threading
from listen_finalization.processing.network import SystemResolver
socket.getaddrinfo = lambda *_, **__: threading.Event().wait()

async def ask():
    try:
        await asyncio.wait_for(SystemResolver()("hangs.example", 443), 0.1)
    except TimeoutError:
        print("gave up", flush=True)

asyncio.run(ask())
"""


class Names:
    """Stands in for the system: `hangs.example` is answered once `go` is set, others at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.hanging = 0
        self._lock = threading.Lock()
        monkeypatch.setattr(socket, "getaddrinfo", self)

    def __call__(self, host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        if host == "hangs.example":
            with self._lock:
                self.hanging += 1
            self.go.wait(PATIENCE)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ANSWER)]

    async def held(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.hanging < count:  # noqa: ASYNC110 - the lookups are in threads
                await asyncio.sleep(0.005)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    made = Names(monkeypatch)
    yield made
    made.go.set()


def hanging(resolver: SystemResolver, count: int) -> list[asyncio.Future[object]]:
    return [asyncio.ensure_future(resolver("hangs.example", 443)) for _ in range(count)]


async def test_lookups_that_hang_do_not_delay_another(names: Names) -> None:
    resolver = SystemResolver()
    waiting = hanging(resolver, MOST - 1)
    await names.held(len(waiting))
    for _ in range(3):
        assert await asyncio.wait_for(resolver("fine.example", 443), PATIENCE / 4) == (ANSWER[0],)
    assert not any(lookup.done() for lookup in waiting)
    names.go.set()
    assert await asyncio.gather(*waiting) == [(ANSWER[0],)] * len(waiting)


async def test_one_more_than_all_lookups_is_refused_at_once_until_one_has_ended(
    names: Names,
) -> None:
    resolver = SystemResolver()
    waiting = hanging(resolver, MOST)
    await names.held(MOST)
    for lookup in waiting:  # a caller that gave up leaves its lookup under way
        lookup.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    begun = time.monotonic()
    with pytest.raises(NameResolutionError):
        await resolver("fine.example", 443)
    assert time.monotonic() - begun < 1
    names.go.set()
    assert await _at_last(resolver) == (ANSWER[0],)


async def _at_last(resolver: SystemResolver) -> object:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await resolver("fine.example", 443)
            except NameResolutionError:
                await asyncio.sleep(0.005)


async def test_a_thread_that_the_system_refuses_costs_no_later_lookup(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    resolver = SystemResolver()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        for _ in range(MOST):
            with pytest.raises(NameResolutionError):
                await resolver("fine.example", 443)
    assert await resolver("fine.example", 443) == (ANSWER[0],)


def test_a_lookup_that_hangs_does_not_keep_the_process_from_its_exit() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _HANGING],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert (ended.stdout, ended.stderr) == ("gave up\n", "")
