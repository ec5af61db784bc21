"""Admission through the library: one producer against its floor, 64 in flight against commits.

The stack is built and not started, so that nothing but admissions is measured. The floor of one
producer is the recorded statements of the same admissions, each under its own commit, from one
thread that calls sqlite3 directly. The floor of 64 in flight (shown, without a demand) is the same
statements from 64 tasks through one writing thread with shared commits.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from bench.figures import Demand, Row, Run, ratio_row
from bench.plan import Bench, alternated
from bench.product import (
    UID,
    NoOp,
    admit,
    conversation,
    demand_equal,
    in_flight,
    prepare,
    queued,
    settings,
)
from bench.raw import Commits, Member, RawWriter, Shared
from bench.record import recording
from listen_finalization.outbox.database import DATABASE
from listen_finalization.stack import Stack

WIDTH = 64


class Library:
    """Admissions through `Admission.admit` of a stack that was not started."""

    def __init__(self, directory: Path) -> None:
        self._runner = asyncio.Runner()
        self._stack = Stack(settings(directory), processor=NoOp())

    def block(self, numbers: range, *, width: int) -> float:
        return self._runner.run(self._admit(numbers, width))

    async def _admit(self, numbers: range, width: int) -> float:
        began = time.perf_counter()
        await in_flight(numbers, width, lambda number: admit(self._stack.admission, number))
        return time.perf_counter() - began

    def close(self) -> None:
        self._stack.store.close()
        self._runner.close()


class Statements:
    """The recorded statements of the same admissions by conversation number."""

    def __init__(self, bench: Bench, prepared: Path, count: int) -> None:
        directory = bench.place.copy(prepared)
        with recording() as held:
            library = Library(directory)
            library.block(range(count), width=WIDTH)
            library.close()
        bench.place.drop(directory)
        members = held.members()
        self._members = [members[UID, conversation(number)][0] for number in range(count)]
        self.savepoints = held.savepoints

    def of(self, number: int) -> Member:
        return self._members[number]


def measure(bench: Bench) -> list[Row]:
    """Measure both forms of admission."""
    plan = bench.plan
    alone = _alone(bench, plan.alone)
    together = _together(bench, plan.together)
    return [
        ratio_row(
            "admission",
            "admission, one producer",
            alone,
            "floor",
            unit="x floor",
            per="per s",
            demand=Demand(0.4, 0.65),
        ),
        ratio_row(
            "admission",
            "admission, 64 in flight",
            together,
            "commits",
            unit="x commits",
            per="per s",
            demand=Demand(1.5, 2.0),
        ),
        ratio_row(
            "admission",
            "  the same over its floor",
            together,
            "floor",
            unit="x floor",
            per="per s",
        ),
    ]


def _alone(bench: Bench, count: int) -> tuple[Run, ...]:
    prepared = bench.place.new()
    prepare(prepared, count, admitted=False)
    statements = Statements(bench, prepared, count)
    return tuple(
        _pair_alone(bench, prepared, statements, count, turn)
        for turn in bench.runs("admission, one producer")
    )


def _pair_alone(bench: Bench, prepared: Path, statements: Statements, count: int, turn: int) -> Run:
    ours, floors = bench.place.copy(prepared), bench.place.copy(prepared)
    library = Library(ours)
    shared = Shared(floors / DATABASE, savepoints=statements.savepoints)

    def floor(numbers: range) -> float:
        began = time.perf_counter()
        for number in numbers:
            shared.commit((statements.of(number),))
        return time.perf_counter() - began

    rates = alternated(
        count,
        bench.plan.blocks,
        turn,
        {"floor": floor, "product": lambda numbers: library.block(numbers, width=1)},
    )
    library.close()
    shared.close()
    _check(ours, floors, count - count % bench.plan.blocks)
    bench.place.drop(ours, floors)
    return rates


def _check(ours: Path, floors: Path, count: int) -> None:
    demand_equal("admitted by the product", queued(ours), count)
    demand_equal("admitted by the floor", queued(floors), count)


def _together(bench: Bench, count: int) -> tuple[Run, ...]:
    prepared = bench.place.new()
    prepare(prepared, count, admitted=False)
    statements = Statements(bench, prepared, count)
    return tuple(
        _pair_together(bench, prepared, statements, count, turn)
        for turn in bench.runs("admission, 64 in flight")
    )


def _pair_together(
    bench: Bench, prepared: Path, statements: Statements, count: int, turn: int
) -> Run:
    ours, floors, base = bench.place.copy(prepared), bench.place.copy(prepared), bench.place.new()
    library = Library(ours)
    writer = RawWriter(floors / DATABASE, savepoints=statements.savepoints)
    commits = Commits(base / DATABASE)
    share = bench.plan.commits / count

    def base_block(numbers: range) -> float:
        """Make fewer commits than there are numbers, and tell the time of as many as those."""
        fewer = max(round(len(numbers) * share), 1)
        return commits.block(fewer) * len(numbers) / fewer

    with asyncio.Runner() as runner:
        rates = alternated(
            count,
            bench.plan.blocks,
            turn,
            {
                "commits": base_block,
                "floor": lambda numbers: runner.run(_floor(writer, statements, numbers)),
                "product": lambda numbers: library.block(numbers, width=WIDTH),
            },
        )
    library.close()
    writer.close()
    commits.close()
    _check(ours, floors, count - count % bench.plan.blocks)
    bench.place.drop(ours, floors, base)
    return rates


async def _floor(writer: RawWriter, statements: Statements, numbers: range) -> float:
    began = time.perf_counter()
    await in_flight(numbers, WIDTH, lambda number: writer.submit(statements.of(number)))
    return time.perf_counter() - began
