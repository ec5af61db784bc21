"""A loop that runs at once, then at intervals, and that no turn can end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from listen_finalization.errors import StoreError
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.periodic import SPREAD, Periodic


class Turns:
    """Does each of its turns once, the last one from then on, and counts them."""

    def __init__(self, *turns: Callable[[], Awaitable[object]]) -> None:
        self.count = 0
        self.waits: list[float] = []
        self.enough = asyncio.Event()
        self._turns = turns

    async def turn(self) -> object:
        self.count += 1
        return await self._turns[min(self.count, len(self._turns)) - 1]()

    async def sleep(self, wait: float) -> None:
        self.waits.append(wait)
        if len(self.waits) >= 5:
            self.enough.set()
            await asyncio.sleep(60)
        await asyncio.sleep(0)


async def fine() -> object:
    return None


async def store_fault() -> object:
    raise StoreError


async def unknown_fault() -> object:
    raise RuntimeError("canary")


async def hang() -> object:
    await asyncio.sleep(60)
    return None


async def cancelled_inside() -> object:
    """Wait for something that somebody else cancelled."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    await future
    return None


async def ran(*turns: Callable[[], Awaitable[object]], limit: float = 0.05) -> tuple[Turns, int]:
    signals, told = Signals(), Turns(*turns)
    loop = Periodic(told.turn, signals, interval=300, limit=limit, sleep=told.sleep)
    loop.start()
    async with asyncio.timeout(5):
        await told.enough.wait()
    await loop.stop()
    return told, signals.count(Event.ROUND_FAILED)


@pytest.mark.parametrize("bad", [store_fault, unknown_fault, hang, cancelled_inside])
async def test_no_turn_ends_the_loop(bad: Callable[[], Awaitable[object]]) -> None:
    told, failed = await ran(bad, fine, bad, fine)
    assert told.count >= 5
    assert failed == 2


async def test_replicas_drift_apart_by_a_tenth() -> None:
    told, _ = await ran(fine)
    assert all(300 * (1 - SPREAD) <= wait <= 300 * (1 + SPREAD) for wait in told.waits)
    assert len(set(told.waits)) > 1


async def test_the_first_turn_delays_no_start() -> None:
    loop = Periodic(hang, Signals(), interval=300, limit=60)
    loop.start()
    loop.start()
    await asyncio.sleep(0)
    async with asyncio.timeout(1):
        await loop.stop()
        await loop.stop()


async def test_a_stop_ends_the_turn_under_way() -> None:
    signals, told = Signals(), Turns(hang)
    loop = Periodic(told.turn, signals, interval=300, limit=60)
    loop.start()
    await asyncio.sleep(0)
    async with asyncio.timeout(1):
        await loop.stop()
    assert (told.count, signals.count(Event.ROUND_FAILED)) == (1, 0)
