"""rec-loop-dies: no fault of a round ends the rounds, and a missing round can be seen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from listen_finalization.domain.commands import Redispatch
from listen_finalization.domain.job import Instant
from listen_finalization.errors import StoreUnavailableError
from listen_finalization.observe.signals import Event
from listen_finalization.periodic import Periodic
from listen_finalization.reconcile import STAMP, Reconciler, Recovery
from listen_finalization.testing.workshop import Workshop

from .cloud import STALE, Cloud, cloud
from .ground import Ground

ROWS = 30


class Troubled:
    """Fails or hangs once, at the listing or at row 7; all else is the store's own."""

    def __init__(self, workshop: Workshop, trouble: str) -> None:
        self._outbox = workshop.outbox
        self.trouble = trouble
        self.rows = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._outbox, name)

    async def due(self, limit: int, **options: Any) -> Any:
        if limit > 1 and self.trouble in ("listing", "hang"):
            await self._struck()
        return await self._outbox.due(limit, **options)

    async def apply(self, command: Any) -> Any:
        self.rows += isinstance(command, Redispatch)
        if self.rows == 7 and self.trouble == "row 7":
            await self._struck()
        return await self._outbox.apply(command)

    async def _struck(self) -> None:
        trouble, self.trouble = self.trouble, ""
        if trouble == "hang":
            await asyncio.sleep(600)
        raise StoreUnavailableError


@asynccontextmanager
async def rounds(here: Cloud, outbox: Any) -> AsyncIterator[Periodic]:
    """Run rounds in quick succession, each with an interval behind the one before."""
    reconciler = Reconciler(
        outbox,
        here.workshop.store.records,
        here.workshop.dispatcher,
        here.workshop.signals,
        recovery=Recovery.HAND_OVER,
        stale=STALE,
        monotonic=here.clock.monotonic,
    )

    async def sleep(_: float) -> None:
        here.clock.advance(200)
        await asyncio.sleep(0.01)

    loop = Periodic(reconciler.run_once, here.workshop.signals, interval=300, limit=1, sleep=sleep)
    loop.start()
    try:
        yield loop
    finally:
        await loop.stop()


async def last_success(here: Cloud) -> Instant | None:
    held = await here.workshop.store.records.get(*STAMP)
    return None if held is None else held.value.get("done")


@pytest.mark.parametrize("when", ["at start-up", "later"])
@pytest.mark.parametrize("trouble", ["listing", "row 7", "hang", "queue"])
async def test_the_loop_goes_on_and_every_row_is_handed_over(
    trouble: str, when: str, ground: Ground
) -> None:
    async with cloud(ground) as here:
        jobs = [await here.admitted(f"c{number}") for number in range(ROWS)]
        outbox = Troubled(here.workshop, trouble if when == "at start-up" else "")
        dispatcher = here.workshop.dispatcher
        if when == "at start-up":
            here.clock.advance(STALE + 1)
            dispatcher.error = KeyError("canary") if trouble == "queue" else None
        async with rounds(here, outbox):
            if when == "later":
                await seen(here, Event.ROUND_DONE, 1)
                outbox.trouble = trouble
                dispatcher.error = KeyError("canary") if trouble == "queue" else None
                here.clock.advance(STALE + 1)
            told = Event.ENQUEUE_FAILED if trouble == "queue" else Event.ROUND_FAILED
            await seen(here, told, 1)
            dispatcher.error = None
            await handed(here, {job.job_id for job in jobs})
        await here.look()
        await here.checks(settled=False)


async def test_a_hanging_round_is_seen_by_the_age_of_the_last_whole_one(ground: Ground) -> None:
    async with cloud(ground) as here:
        await here.admitted()
        outbox = Troubled(here.workshop, "")
        async with rounds(here, outbox):
            await seen(here, Event.ROUND_DONE, 1)
        first = await last_success(here)
        here.clock.advance(10_000)
        outbox.trouble = "hang"
        begun = Reconciler(
            outbox,
            here.workshop.store.records,
            here.workshop.dispatcher,
            here.workshop.signals,
            recovery=Recovery.HAND_OVER,
        ).run_once(force=True)
        hanging = asyncio.ensure_future(begun)
        await asyncio.sleep(0.1)
        assert first is not None and await last_success(here) == first
        hanging.cancel()


async def seen(here: Cloud, event: Event, count: int) -> None:
    signals = here.workshop.signals
    async with asyncio.timeout(10):
        while sum(n for (e, _), n in signals.counts.items() if e is event) < count:  # noqa: ASYNC110 - seen from outside
            await asyncio.sleep(0.005)


async def handed(here: Cloud, wanted: set[str]) -> None:
    """Wait until each job was handed over at a generation that the reconciler minted."""
    async with asyncio.timeout(10):
        while True:
            jobs = [job for job, _ in here.workshop.dispatcher.handed]
            if wanted <= {job.job_id for job in jobs if job.dispatch_generation > 1}:
                return
            await asyncio.sleep(0.005)
