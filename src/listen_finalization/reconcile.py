"""Recovering what was lost: a bounded round over due rows, correct with several replicas."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from listen_finalization.admission import hand_over, waits_for_worker
from listen_finalization.domain.codes import Actor, RefusalCode, Verb
from listen_finalization.domain.commands import Command, Park, Postpone, Redispatch
from listen_finalization.domain.decision import Answer, Decision, Refused
from listen_finalization.domain.job import SECOND, seconds
from listen_finalization.finalizer import Delivery, Finalizer
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.ports import Dispatcher, DueRow, Outbox, Records

PAGE = 100
AGAIN_LIMIT = 200
"""How many rows of a round may be re-dispatched for a second time or more (contract 12)."""
INLINE_RUNS = 4
SET_ASIDE = seconds(300)

_STAMP = ("stamp", "reconcile")


class Recovery(StrEnum):
    """What a round does with a due job that runs on the platform's keys."""

    HAND_OVER = "hand_over"
    RUN = "run"
    LEAVE = "leave"


@dataclass(slots=True)
class Round:
    """What a round did, by kind; `skipped` when another replica's round was young enough."""

    skipped: bool = False
    seen: int = 0
    parked: int = 0
    redispatched: int = 0
    again: int = 0
    postponed: int = 0
    fenced: int = 0
    ended: int = 0
    ran: int = 0
    left: int = 0
    set_aside: int = 0
    enqueue_failed: int = 0
    out_of_time: bool = False


class Reconciler:
    """Takes due rows page by page; every row that it touches moves its due time."""

    def __init__(
        self,
        outbox: Outbox,
        records: Records,
        dispatcher: Dispatcher,
        signals: Signals,
        *,
        recovery: Recovery,
        finalizer: Finalizer | None = None,
        interval: float = 300.0,
        stale: float = 300.0,
        budget: float = 60.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`interval`, `stale` and the round's `budget` are seconds.

        `Recovery.RUN` needs the `finalizer` of this process.
        """
        self._outbox = outbox
        self._records = records
        self._dispatcher = dispatcher
        self._signals = signals
        self._recovery = recovery
        self._finalizer = finalizer
        self._interval = interval
        self._stale = seconds(stale)
        self._budget = budget
        self._monotonic = monotonic

    async def run_once(self, *, force: bool = False) -> Round:
        """Run one round, unless one was begun within half an interval and `force` is off.

        Raises `StoreError`: a store in trouble ends the round, and the caller's loop goes on.
        """
        done = Round()
        if not await self._stamped(force):
            done.skipped = True
            return done
        ends = self._monotonic() + self._budget
        after: DueRow | None = None
        while True:
            page = await self._outbox.due(PAGE, after=after)
            await self._take(page.rows, done)
            if len(page.rows) < PAGE:
                break
            after = page.rows[-1]
            if self._monotonic() >= ends:
                done.out_of_time = True
                break
        self._tell(done)
        return done

    async def _stamped(self, force: bool) -> bool:
        """Stamp the round's start by compare-and-set; False where another's is young."""
        now = (await self._outbox.due(1)).now
        held = await self._records.get(*_STAMP)
        if held is not None and not force:
            age = (now - int(held.value["at"])) / SECOND
            if 0 <= age < self._interval / 2:
                return False
        version = held.version if held is not None else 0
        written = await self._records.put_if(*_STAMP, {"at": now}, version=version)
        return written is not None or force

    async def _take(self, rows: tuple[DueRow, ...], done: Round) -> None:
        runs: list[Awaitable[None]] = []
        for row in rows:
            done.seen += 1
            if row.status is None:
                await self._set_aside(row, done)
            elif row.requires_byok:
                await self._apply(Park(row.job_id, row.generation), row, done)
            elif self._recovery is Recovery.HAND_OVER:
                await self._recover(row, done)
            elif self._recovery is Recovery.RUN:
                runs.append(self._run(row, done))
            else:
                done.left += 1
        await _bounded(runs)

    async def _recover(self, row: DueRow, done: Round) -> None:
        again = row.handovers > 1
        if again and done.again >= AGAIN_LIMIT:
            later = Postpone(row.job_id, row.generation, row.due, self._stale, Actor.RECONCILER)
            await self._apply(later, row, done)
            return
        done.again += again
        answer = await self._apply(Redispatch(row.job_id, row.generation), row, done)
        job = answer.job
        if isinstance(answer, Decision) and job is not None and waits_for_worker(job):
            taken = await hand_over(self._dispatcher, self._signals, job)
            done.enqueue_failed += not taken

    async def _run(self, row: DueRow, done: Round) -> None:
        if self._finalizer is not None:
            await self._finalizer.run(Delivery(row.job_id, row.generation, Actor.PUSHER))
            done.ran += 1

    async def _apply(self, command: Command, row: DueRow, done: Round) -> Answer:
        answer = await self._outbox.apply(command)
        if isinstance(answer, Refused):
            await self._refused(answer, row, done)
        else:
            _count(answer, done)
        return answer

    async def _refused(self, answer: Refused, row: DueRow, done: Round) -> None:
        if answer.code is RefusalCode.SCHEMA_NEWER:
            await self._set_aside(row, done)
        elif answer.code is RefusalCode.KEYS_REQUIRED:
            await self._apply(Park(row.job_id, row.generation), row, done)

    async def _set_aside(self, row: DueRow, done: Round) -> None:
        done.set_aside += await self._outbox.set_aside(row.job_id, row.due, SET_ASIDE)
        self._signals.emit(Event.ROW_SET_ASIDE, job_id=row.job_id, level=logging.ERROR)

    def _tell(self, done: Round) -> None:
        numbers = {name: int(getattr(done, name)) for name in Round.__slots__ if name != "skipped"}
        self._signals.emit(Event.ROUND_DONE, numbers=numbers)


def _count(answer: Decision, done: Round) -> None:
    job = answer.job
    if job is None or not answer.changed:
        return
    if answer.did is Verb.FENCE:
        done.fenced += 1
    elif job.terminal:
        done.ended += 1
    elif answer.did is Verb.PARK:
        done.parked += 1
    elif answer.did is Verb.POSTPONE:
        done.postponed += 1
    else:
        done.redispatched += 1


async def _bounded(runs: list[Awaitable[None]]) -> None:
    gate = asyncio.Semaphore(INLINE_RUNS)

    async def one(run: Awaitable[None]) -> None:
        async with gate:
            await run

    await asyncio.gather(*(one(run) for run in runs))
