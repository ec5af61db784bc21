"""How soon an admitted job runs on an idle stack, against the same steps without us.

Product: from the call of `Admission.admit` to the first line of the processor, in its thread.
Floor: the admission's statements and commit, the due query, a POST to a bare route that verifies an
RS256 token, the claim's statements and commit, the read of the content; all in one thread, in that
order.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from pathlib import Path

from bench.bare import BareWorker
from bench.figures import Demand, Row, Run, ratio_row
from bench.plan import Bench
from bench.product import (
    UID,
    NoOp,
    admit,
    completed,
    conversation,
    demand_equal,
    job_places,
    prepare,
    settings,
    until,
)
from bench.raw import Member, Shared, connect, execute
from bench.record import recording
from listen_finalization.domain.content import Enrichment
from listen_finalization.observe.signals import Event
from listen_finalization.outbox.database import DATABASE
from listen_finalization.outbox.statements import STATEMENTS
from listen_finalization.processing.protocol import Request
from listen_finalization.stack import Stack

PATIENCE = 60.0


class Stamped(NoOp):
    """A no-op processor that notes when it was entered."""

    def __init__(self) -> None:
        self.entered = 0.0

    def enrich(self, request: Request) -> Enrichment | None:
        self.entered = time.perf_counter()
        return super().enrich(request)


class Idle:
    """A started stack that has nothing to do between two samples."""

    def __init__(self, directory: Path) -> None:
        self._processor = Stamped()
        self.stack = Stack(settings(directory), processor=self._processor)

    async def sample(self, number: int) -> float:
        """Return the seconds from the admission to the processor; the job is settled on return."""
        began = time.perf_counter()
        await admit(self.stack.admission, number)
        await until(lambda: self.stack.signals.count(Event.JOB_COMPLETED) > number, 0.002)
        return self._processor.entered - began


class Floor:
    """The recorded steps of the same jobs."""

    def __init__(self, directory: Path, steps: list[list[Member]], *, savepoints: bool) -> None:
        self._steps = steps
        self._shared = Shared(directory / DATABASE, savepoints=savepoints)
        self._reading = connect(directory / DATABASE)
        self._bare = BareWorker(self._work)

    async def sample(self, number: int) -> float:
        opening, _, _, *ending = self._steps[number]
        began = time.perf_counter()
        self._shared.commit((opening,))
        page = (STATEMENTS["due_page"], (2**62, 0, "", 64))
        self._read((page,))
        await self._bare.deliver(str(number))
        seconds = time.perf_counter() - began
        for member in ending:
            self._shared.commit((member,))
        return seconds

    async def _work(self, job_id: str) -> None:
        _, claim, content, *_ = self._steps[int(job_id)]
        self._shared.commit((claim,))
        self._read(content)

    def _read(self, member: Member) -> None:
        self._reading.execute("BEGIN")
        execute(self._reading, member)
        self._reading.execute("COMMIT")

    def close(self) -> None:
        self._reading.close()
        self._shared.close()


def measure(bench: Bench) -> list[Row]:
    """Measure the way from the admission to the run; samples of both sides take turns."""
    count = bench.plan.samples
    bench.say("admission to start of the run: prepare and record")
    prepared = bench.place.new()
    prepare(prepared, count, admitted=False)
    steps, savepoints = _recorded(bench, prepared)
    runs = tuple(
        asyncio.run(_pair(bench, prepared, steps, savepoints))
        for _ in bench.runs("admission to start of the run")
    )
    row = ratio_row(
        "start",
        "admission to start of the run, idle, p50",
        runs,
        "floor",
        unit="x floor",
        per="ms",
        demand=Demand(2.0, at_most=True),
    )
    return [row]


def _recorded(bench: Bench, prepared: Path) -> tuple[list[list[Member]], bool]:
    """Return admission, claim, content read and settlement of every conversation."""
    directory = bench.place.copy(prepared)
    with recording() as held:
        asyncio.run(_sampled(directory, bench.plan.samples))
    members = held.members()
    jobs = {name: job_id for job_id, (_, name) in job_places(directory).items()}
    bench.place.drop(directory)
    steps = []
    for number in range(bench.plan.samples):
        opening, content = _kinds(members[UID, conversation(number)])
        claim, *ending = members[(jobs[conversation(number)],)]
        steps.append([opening, claim, content, *ending])
    return steps, held.savepoints


def _kinds(found: list[Member]) -> tuple[Member, Member]:
    """Tell the admission from the read of the content: both begin by the conversation's key."""
    opening = next(m for m in found if m[0][0] == STATEMENTS["read_conversation_and_job"])
    content = next(m for m in found if m[0][0] == STATEMENTS["read_content"])
    return opening, content


async def _sampled(directory: Path, count: int) -> list[float]:
    idle = Idle(directory)
    async with asyncio.timeout(PATIENCE), idle.stack:
        return [await idle.sample(number) for number in range(count)]


async def _pair(bench: Bench, prepared: Path, steps: list[list[Member]], savepoints: bool) -> Run:
    ours, floors = bench.place.copy(prepared), bench.place.copy(prepared)
    idle, floor = Idle(ours), Floor(floors, steps, savepoints=savepoints)
    told: dict[str, list[float]] = {"floor": [], "product": []}
    async with asyncio.timeout(PATIENCE), idle.stack:
        for number in range(bench.plan.samples):
            for side in ("floor", "product") if number % 2 else ("product", "floor"):
                await asyncio.sleep(random.uniform(0.02, 0.06))
                sample = floor.sample if side == "floor" else idle.sample
                told[side].append(await sample(number) * 1_000)
    floor.close()
    _check(ours, floors, bench.plan.samples)
    bench.place.drop(ours, floors)
    return {side: statistics.median(values) for side, values in told.items()}


def _check(ours: Path, floors: Path, count: int) -> None:
    demand_equal("completed by the product", completed(ours), count)
    demand_equal("completed by the floor", completed(floors), count)
