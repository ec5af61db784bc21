"""Draining a full outbox through the whole embedded path, against the same path without us.

The floor takes the same prepared file, finds the due rows by the same query, and delivers them,
four at once, to a bare Starlette route behind the same transport. The route verifies an RS256 token
at every delivery and runs the statements that were recorded of that very job: the claim and the
settlement through one writing thread whose waiting callers share the next commit, the read of the
content in a reading thread. So it has the product's threads, commits and statements, and decides,
checks, encodes, logs and supervises nothing.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from pathlib import Path
from typing import Any

from bench.bare import BareWorker
from bench.figures import Demand, Row, Run, ratio_row
from bench.plan import Bench
from bench.product import (
    SLOTS,
    NoOp,
    completed,
    demand_equal,
    job_places,
    prepare,
    settings,
    until,
)
from bench.raw import Member, RawReader, RawWriter
from bench.record import recording
from listen_finalization.dispatch.embedded import PAGE
from listen_finalization.observe.signals import Event
from listen_finalization.outbox.database import DATABASE
from listen_finalization.outbox.statements import STATEMENTS
from listen_finalization.stack import Stack

PATIENCE = 240.0
"""Seconds after which a drain is given up."""


class Script:
    """What was recorded of every job: its transitions in their order, and its content read."""

    def __init__(self, bench: Bench, prepared: Path, count: int) -> None:
        directory = bench.place.copy(prepared)
        with recording() as held:
            asyncio.run(drained(directory, count))
        members = held.members()
        self.savepoints = held.savepoints
        self.transitions: dict[str, list[Member]] = {}
        self.reads: dict[str, Member] = {}
        for job_id, place in job_places(directory).items():
            self.transitions[job_id] = members[(job_id,)]
            self.reads[job_id] = members[place][0]
        bench.place.drop(directory)


async def drained(directory: Path, count: int) -> float:
    """Start a stack over the directory and return the seconds until `count` jobs are completed."""
    stack = Stack(settings(directory), processor=NoOp())
    began = time.perf_counter()
    async with asyncio.timeout(PATIENCE), stack:
        await until(lambda: stack.signals.count(Event.JOB_COMPLETED) >= count, 0.005)
        return time.perf_counter() - began


class Floor:
    """The dispatcher of the floor: due rows, four deliveries at once, nothing else."""

    def __init__(self, directory: Path, script: Script) -> None:
        self._script = script
        self._writer = RawWriter(directory / DATABASE, savepoints=script.savepoints)
        self._reader = RawReader(directory / DATABASE)
        self._bare = BareWorker(self._work)
        self._now = _last_due(directory)
        self._backlog: deque[str] = deque()
        self._taken: set[str] = set()
        self._fetching = asyncio.Lock()

    async def _work(self, job_id: str) -> None:
        first, *rest = self._script.transitions[job_id]
        await self._writer.submit(first)
        await self._reader.read(self._script.reads[job_id])
        for member in rest:
            await self._writer.submit(member)

    async def drained(self) -> float:
        """Return the seconds until no row is due any more."""
        began = time.perf_counter()
        await asyncio.gather(*(self._slot() for _ in range(SLOTS)))
        seconds = time.perf_counter() - began
        self._close()
        return seconds

    async def _slot(self) -> None:
        while (job_id := await self._next()) is not None:
            await self._bare.deliver(job_id)

    async def _next(self) -> str | None:
        async with self._fetching:
            if not self._backlog:
                await self._fetch()
        return self._backlog.popleft() if self._backlog else None

    async def _fetch(self) -> None:
        values: tuple[Any, ...] = (self._now, 0, "", PAGE)
        for job_id, *_ in await self._reader.read(((STATEMENTS["due_page"], values),)):
            if job_id not in self._taken:
                self._taken.add(job_id)
                self._backlog.append(job_id)

    def _close(self) -> None:
        self._writer.close()
        self._reader.close()


def _last_due(directory: Path) -> int:
    connection = sqlite3.connect(directory / DATABASE)
    try:
        sql = "SELECT max(reconcile_after_at) FROM conversation_finalization_jobs"
        return int(connection.execute(sql).fetchone()[0])
    finally:
        connection.close()


def measure(bench: Bench) -> list[Row]:
    """Measure the drain; who goes first changes from run to run."""
    count = bench.plan.jobs
    what = f"drain of {count} no-op jobs, {SLOTS} slots"
    bench.say(f"{what}: prepare and record")
    prepared = bench.place.new()
    prepare(prepared, count, admitted=True)
    script = Script(bench, prepared, count)
    runs = tuple(_pair(bench, prepared, script, turn) for turn in bench.runs(what))
    row = ratio_row(
        "drain", what, runs, "floor", unit="x floor", per="per s", demand=Demand(0.5, 0.8)
    )
    return [row]


def _pair(bench: Bench, prepared: Path, script: Script, turn: int) -> Run:
    order = ("floor", "product") if turn % 2 == 0 else ("product", "floor")
    return {side: _rate(bench, prepared, script, side) for side in order}


def _rate(bench: Bench, prepared: Path, script: Script, side: str) -> float:
    count = bench.plan.jobs
    directory = bench.place.copy(prepared)
    if side == "floor":
        seconds = asyncio.run(_floor(directory, script))
    else:
        seconds = asyncio.run(drained(directory, count))
    demand_equal(f"completed by the {side}", completed(directory), count)
    bench.place.drop(directory)
    return count / seconds


async def _floor(directory: Path, script: Script) -> float:
    async with asyncio.timeout(PATIENCE):
        return await Floor(directory, script).drained()
