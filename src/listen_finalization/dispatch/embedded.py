"""The dispatcher of one machine: the outbox is its queue, the worker route its target.

It keeps nothing of its own: what is due stands in the rows, and a start moves no generation.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable

from listen_finalization.dispatch.in_process import Worker
from listen_finalization.dispatch.processes import Election, ProcessRegistry
from listen_finalization.domain.codes import Actor, RefusalCode
from listen_finalization.domain.commands import Park, Postpone
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.identity import task_name
from listen_finalization.domain.job import SECOND, Job, seconds
from listen_finalization.errors import StoreError
from listen_finalization.moving import move, set_aside
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.ports import DueRow, Outbox
from listen_finalization.settings import RUN_PATH

QUEUE = "embedded"
PAGE = 64
POLL = 0.25
"""Seconds between two looks at other processes' commits (contract 7: within 0.5 s)."""
CHECK_LIVES = 1.0
"""Seconds between two looks for leases of dead processes."""
POSTPONE = 2.0
"""Seconds by which a delivery that changed nothing moves its row's due time."""


class EmbeddedDispatcher:
    """Pulls due rows and delivers them, at most `slots` at once; one process at a time leads.

    It is the `ports.Dispatcher` of its mode as well: the row itself is the hand-over.
    """

    def __init__(
        self,
        outbox: Outbox,
        token: Callable[[], str],
        registry: ProcessRegistry,
        election: Election,
        signals: Signals,
        *,
        slots: int,
        data_version: Callable[[], int],
        outlived: Callable[[], int] = lambda: 0,
    ) -> None:
        """Deliver with what `token` returns at each delivery.

        `data_version` returns a number that changes when another process commits; `outlived` how
        many of the worker's slots are held by steps whose runs have ended.
        """
        self._outbox = outbox
        self._worker: Worker | None = None
        self._token = token
        self._registry = registry
        self._election = election
        self._signals = signals
        self._slots = slots
        self._outlived = outlived
        self._data_version = data_version
        self._seen_version = -1
        self._look_at = 0.0
        self._lives_at = 0.0
        self._woken = asyncio.Event()
        self._looking = False
        self._backlog: deque[DueRow] = deque()
        self._in_flight: dict[str, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def leads(self) -> bool:
        return self._election.leads

    def wake(self) -> None:
        """Look at the outbox now. Call it from the dispatcher's own event loop."""
        self._woken.set()

    async def hand_over(self, job: Job, *, delay: int = 0) -> bool:
        """Deliver the job at once where nothing else waits, else look at the outbox.

        There the job's row says when it is due.
        """
        if self._at_rest and not delay and _due_when_written(job):
            self._launch(_due_row(job))
        else:
            self.wake()
        return True

    @property
    def _at_rest(self) -> bool:
        """Whether a slot is free and no row is known, or being looked for, that was here before."""
        full = len(self._in_flight) + self._outlived() >= self._slots
        busy = full or bool(self._backlog) or self._looking or self._woken.is_set()
        return self._task is not None and self.leads and not busy

    def start(self, worker: Worker) -> None:
        """Begin delivering to the worker route of `worker`; returns at once."""
        self._worker = worker
        self._task = asyncio.ensure_future(self._loop())

    async def stop(self) -> None:
        """Take no more rows and give the lead up; deliveries under way go on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._election.resign()

    async def landed(self) -> None:
        """Wait for the deliveries under way."""
        await asyncio.gather(*self._in_flight.values(), return_exceptions=True)

    async def _loop(self) -> None:
        while True:
            wait = CHECK_LIVES
            try:
                if self._election.campaign():
                    wait = await self._round()
                else:
                    self._woken.clear()  # the leader sees the commit
            except Exception as fault:  # noqa: BLE001 - the loop must outlive any round
                self._look_at = 0.0
                self._signals.emit(Event.ROUND_FAILED, fault=fault, level=logging.ERROR)
                self._woken.clear()
            await self._sleep(wait)

    async def _sleep(self, wait: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._woken.wait()

    async def _round(self) -> float:
        """Fill the free slots with what is due; return how many seconds there is nothing to do."""
        now = time.monotonic()
        if now >= self._lives_at:
            await self._check_lives()
            self._lives_at = now + CHECK_LIVES
        if self._news(now):
            await self._fill()
        return min(POLL, max(self._look_at - time.monotonic(), 0.0))

    def _news(self, now: float) -> bool:
        """Whether a look can find something: a wake-up, a due time, or a commit elsewhere."""
        version = self._data_version()
        news = self._woken.is_set() or bool(self._backlog) or now >= self._look_at
        news = news or version != self._seen_version
        self._seen_version = version
        self._woken.clear()
        return news

    async def _fill(self) -> None:
        # A step that outlived its run wakes nobody when it returns.
        self._look_at = time.monotonic() + POLL if self._outlived() else float("inf")
        while len(self._in_flight) + self._outlived() < self._slots:
            if not self._backlog:
                await self._fetch()
            if not self._backlog:
                return
            self._launch(self._backlog.popleft())

    async def _fetch(self) -> None:
        """Read the next due rows; one under way when the read began may stand elsewhere by now."""
        under_way = frozenset(self._in_flight)
        self._looking = True
        try:
            page = await self._outbox.due(PAGE)
        finally:
            self._looking = False
        for row in page.rows:
            if row.job_id not in under_way:
                await self._sort(row)
        if page.next_due is not None:
            due = time.monotonic() + (page.next_due - page.now) / SECOND
            self._look_at = min(due, self._look_at)

    async def _sort(self, row: DueRow) -> None:
        """Queue a row for delivery, or move one that no delivery can help."""
        if row.status is None:
            await set_aside(self._outbox, self._signals, row)
        elif row.requires_byok:
            await self._move(row, Park(row.job_id, row.generation, Actor.DISPATCHER))
        else:
            self._backlog.append(row)

    async def _check_lives(self) -> None:
        """Put jobs whose owner's process is dead before all others."""
        known = {row.job_id for row in self._backlog} | self._in_flight.keys()
        for row in await self._outbox.leases(PAGE):
            held = row.claim_id
            if held is not None and row.job_id not in known and self._registry.dead(held):
                self._backlog.appendleft(row)

    def _launch(self, row: DueRow) -> None:
        if row.job_id in self._in_flight:
            return
        task = asyncio.ensure_future(self._deliver(row))
        self._in_flight[row.job_id] = task
        task.add_done_callback(lambda _: self._land(row.job_id))

    def _land(self, job_id: str) -> None:
        del self._in_flight[job_id]
        self.wake()

    async def _deliver(self, row: DueRow) -> None:
        status, code = await self._post(row)
        if status in _MOVED or self._task is None:
            return
        try:
            if code == RefusalCode.KEYS_REQUIRED:
                await self._move(row, Park(row.job_id, row.generation, Actor.DISPATCHER))
            else:
                later = Postpone(row.job_id, row.generation, row.due, seconds(POSTPONE))
                await self._move(row, later)
        except StoreError as fault:
            self._signals.emit(Event.STORE_FAULT, job_id=row.job_id, fault=fault)
            await asyncio.sleep(POSTPONE)  # the row is due still, and kept in flight until then

    async def _move(self, row: DueRow, command: Park | Postpone) -> None:
        answer = await move(self._outbox, self._signals, row, command)
        if isinstance(answer, Decision) and answer.changed:
            self._signals.emit(Event.ROW_MOVED, code=answer.did, job_id=row.job_id)

    async def _post(self, row: DueRow) -> tuple[str, str]:
        """Deliver one row and return the worker's word for what came of it, with its code."""
        assert self._worker is not None
        try:
            body = {"job_id": row.job_id, "dispatch_generation": row.generation}
            answer = await self._worker.post(RUN_PATH, json=body, headers=self._headers(row))
            told = answer.json()
            return str(told["status"]), str(told["code"])
        except Exception as fault:  # noqa: BLE001 - the row must move, whatever went wrong
            self._signals.emit(
                Event.DELIVERY_FAULT, job_id=row.job_id, fault=fault, level=logging.WARNING
            )
            return "", ""

    def _headers(self, row: DueRow) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self._token()}",
            "X-CloudTasks-QueueName": QUEUE,
            "X-CloudTasks-TaskName": task_name(row.job_id, row.generation),
            "X-CloudTasks-TaskRetryCount": "0",
        }


def _due_when_written(job: Job) -> bool:
    """Whether the row that was just written waits for a worker and for nothing else.

    Of the states only a queued row can be due as it is written.
    """
    due = job.reconcile_after_at
    return not job.requires_byok and due is not None and due <= job.updated_at


def _due_row(job: Job) -> DueRow:
    """Return what the due query would say of a row that `_due_when_written`."""
    assert job.reconcile_after_at is not None
    return DueRow(
        job.job_id,
        job.dispatch_generation,
        job.status,
        job.requires_byok,
        job.handovers,
        job.reconcile_after_at,
        job.claim_id,
    )


_MOVED = frozenset(
    {"completed", "fenced", "dead_lettered", "failed", "deferred", "blocked", "lost"}
)
"""Answers after which the row stands elsewhere, so that its due time needs no hand."""
