"""Recovering what was lost: a bounded round over due rows, correct with several replicas."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from listen_finalization.admission import hand_over, waits_for_worker
from listen_finalization.domain.codes import Actor, RefusalCode, Verb
from listen_finalization.domain.commands import Command, Park, Postpone, Redispatch
from listen_finalization.domain.decision import Answer, Decision, Refused
from listen_finalization.domain.job import SECOND, seconds
from listen_finalization.finalizer import Delivery, Finalizer, ResultKind
from listen_finalization.moving import move, set_aside
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.ports import Dispatcher, DueRow, Outbox, Records

PAGE = 100
AGAIN_LIMIT = 200
"""How many rows of a round may be re-dispatched for a second time or more (contract 12)."""
INLINE_RUNS = 4

STAMP = ("stamp", "reconcile")
"""Kind and key of the record that holds when a round was begun (`at`) and came to its end (`done`).
"""

INLINE_STAMP = ("stamp", "reconcile_inline")
"""The same of rounds that run what they find: one that leaves the jobs does not stand for them."""

_UNMOVED = frozenset({ResultKind.BUSY, ResultKind.IGNORED, ResultKind.UNAVAILABLE})
"""Results of a run after which the row may stand where it stood."""


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

    def counts(self) -> dict[str, int]:
        """Return every field as a number."""
        return {name: int(getattr(self, name)) for name in self.__slots__}


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
        self._stamp = INLINE_STAMP if recovery is Recovery.RUN else STAMP

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
        while not done.out_of_time:
            page = await self._outbox.due(PAGE, after=after)
            await self._take(page.rows, done, ends)
            if len(page.rows) < PAGE:
                break
            after = page.rows[-1]
        await self._done()
        self._tell(done)
        return done

    async def _stamped(self, force: bool) -> bool:
        """Stamp the round's start by compare-and-set; False where another's is young."""
        now = (await self._outbox.due(1)).now
        held = await self._records.get(*self._stamp)
        begun = held.value.get("at") if held is not None else None
        if isinstance(begun, int) and not force:
            age = (now - begun) / SECOND
            if 0 <= age < self._interval / 2:
                return False
        value = {**(held.value if held is not None else {}), "at": now}
        version = held.version if held is not None else 0
        written = await self._records.put_if(*self._stamp, value, version=version)
        return written is not None or force

    async def _done(self) -> None:
        """Note when a round last came to its end; another replica's note is as good."""
        held = await self._records.get(*self._stamp)
        if held is not None:
            now = (await self._outbox.due(1)).now
            await self._records.put_if(
                *self._stamp, {**held.value, "done": now}, version=held.version
            )

    async def _take(self, rows: tuple[DueRow, ...], done: Round, ends: float) -> None:
        runs: list[DueRow] = []
        for row in rows:
            if self._monotonic() >= ends:
                done.out_of_time = True
                break
            done.seen += 1
            if row.status is None:
                await self._set_aside(row, done)
            elif row.requires_byok:
                await self._park(row, done)
            elif self._recovery is Recovery.HAND_OVER:
                await self._recover(row, done)
            elif self._recovery is Recovery.RUN:
                runs.append(row)
            else:
                done.left += 1
        await self._run_all(runs, done)

    async def _park(self, row: DueRow, done: Round) -> None:
        await self._move(row, Park(row.job_id, row.generation), done)

    async def _postpone(self, row: DueRow, done: Round) -> None:
        later = Postpone(row.job_id, row.generation, row.due, self._stale, Actor.RECONCILER)
        await self._move(row, later, done)

    async def _recover(self, row: DueRow, done: Round) -> None:
        again = row.handovers > 1
        if again and done.again >= AGAIN_LIMIT:
            await self._postpone(row, done)
            return
        done.again += again
        answer = await self._move(row, Redispatch(row.job_id, row.generation), done)
        if isinstance(answer, Refused) and answer.code is RefusalCode.KEYS_REQUIRED:
            await self._park(row, done)
        job = answer.job if isinstance(answer, Decision) else None
        if job is not None and waits_for_worker(job):
            taken = await hand_over(self._dispatcher, self._signals, job)
            done.enqueue_failed += not taken

    async def _run_all(self, rows: list[DueRow], done: Round) -> None:
        """Run the rows here, a few at once."""
        gate = asyncio.Semaphore(INLINE_RUNS)

        async def one(row: DueRow) -> None:
            async with gate:
                await self._run(row, done)

        await asyncio.gather(*map(one, rows))

    async def _run(self, row: DueRow, done: Round) -> None:
        if self._finalizer is None:
            return
        result = await self._finalizer.run(Delivery(row.job_id, row.generation, Actor.PUSHER))
        done.ran += 1
        if result.code is RefusalCode.KEYS_REQUIRED:
            await self._park(row, done)
        elif result.kind in _UNMOVED:
            await self._postpone(row, done)

    async def _move(self, row: DueRow, command: Command, done: Round) -> Answer | None:
        answer = await move(self._outbox, self._signals, row, command)
        if answer is None:
            done.set_aside += 1
        elif isinstance(answer, Decision):
            _count(answer, done)
        return answer

    async def _set_aside(self, row: DueRow, done: Round) -> None:
        await set_aside(self._outbox, self._signals, row)
        done.set_aside += 1

    def _tell(self, done: Round) -> None:
        numbers = done.counts()
        del numbers["skipped"]
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
