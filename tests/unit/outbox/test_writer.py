"""The writing thread: who is answered, when, and what a fault or a close does to the rest."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from listen_finalization.errors import StoreError, StoreFullError, StoreUnavailableError
from listen_finalization.outbox.engine import SqliteEngine
from listen_finalization.outbox.writer import Writer

from .stores import append, engine, fails, faulty_engine, names_on_disk, submitted

PATIENCE = 20.0


class Gate:
    """Holds the writing thread at a statement until the test lets it go on."""

    def __init__(self, connection: sqlite3.Connection, statement: str) -> None:
        self.reached = threading.Event()
        self.go = threading.Event()
        self.commits = 0
        self._statement = statement
        connection.set_trace_callback(self._trace)

    def _trace(self, sql: str) -> None:
        self.commits += sql == "COMMIT"
        if sql == self._statement:
            self.reached.set()
            assert self.go.wait(PATIENCE)

    async def wait(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, PATIENCE)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteEngine]:
    made = engine(tmp_path / "store.db")
    yield made
    made.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def writer(store: SqliteEngine) -> Iterator[Writer]:
    made = Writer(store)
    yield made
    made.close()


async def test_no_caller_is_answered_before_the_commit(
    store: SqliteEngine, writer: Writer, path: Path
) -> None:
    gate = Gate(store.connection, "COMMIT")
    waiting = [asyncio.ensure_future(writer.submit(append(f"c{n}"))) for n in range(3)]
    await gate.wait()
    assert not any(task.done() for task in waiting)
    assert names_on_disk(path) == set()
    gate.go.set()
    assert await asyncio.gather(*waiting) == [1, 1, 1]


async def test_callers_that_wait_during_a_commit_share_the_next_in_batches_of_64(
    store: SqliteEngine, writer: Writer
) -> None:
    gate = Gate(store.connection, "BEGIN IMMEDIATE")
    first = asyncio.ensure_future(writer.submit(append("first")))
    await gate.wait()
    rest = [asyncio.ensure_future(writer.submit(append(f"c{n}"))) for n in range(130)]
    await asyncio.sleep(0)
    gate.go.set()
    await asyncio.gather(first, *rest)
    assert gate.commits == 1 + 3


async def test_cancelled_caller_takes_nobody_with_it(
    store: SqliteEngine, writer: Writer, path: Path
) -> None:
    gate = Gate(store.connection, "COMMIT")
    gone = asyncio.ensure_future(writer.submit(append("gone")))
    stays = asyncio.ensure_future(writer.submit(append("stays")))
    await gate.wait()
    gone.cancel()
    gate.go.set()
    assert await stays == 1
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert await writer.submit(append("next")) == 1
    assert names_on_disk(path) == {"gone", "stays", "next"}


async def test_close_finishes_what_was_submitted_and_can_be_repeated(
    store: SqliteEngine, path: Path
) -> None:
    writer = Writer(store)
    waiting = [asyncio.ensure_future(writer.submit(append(f"c{n}"))) for n in range(100)]
    await asyncio.sleep(0)
    await asyncio.gather(*(asyncio.to_thread(writer.close) for _ in range(3)))
    assert await asyncio.gather(*waiting) == [1] * 100
    writer.close()
    assert len(names_on_disk(path)) == 100
    with pytest.raises(StoreUnavailableError):
        await writer.submit(append("late"))


def test_racing_close_leaves_no_caller_waiting(store: SqliteEngine) -> None:
    writer = Writer(store)
    outcomes: list[Any] = []

    def submit() -> None:
        async def many() -> list[Any]:
            operations = [append(f"c{n}") for n in range(50)]
            return await asyncio.wait_for(submitted(writer, operations), PATIENCE)

        outcomes.extend(asyncio.run(many()))

    threads = [threading.Thread(target=submit) for _ in range(4)]
    for thread in threads:
        thread.start()
    writer.close()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(outcomes) == 200
    assert all(isinstance(o, int | StoreUnavailableError) for o in outcomes)


def test_callers_of_several_loops_and_threads_are_each_answered(writer: Writer, path: Path) -> None:
    def run(number: int) -> None:
        operations = [append(f"c{number}-{n}") for n in range(20)]
        assert asyncio.run(submitted(writer, operations)) == [1] * 20

    threads = [threading.Thread(target=run, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(names_on_disk(path)) == 100


async def test_loop_that_ended_costs_the_others_nothing(
    store: SqliteEngine, writer: Writer
) -> None:
    gate = Gate(store.connection, "COMMIT")

    def leave() -> None:
        async def submit() -> None:
            task = asyncio.ensure_future(writer.submit(append("left")))
            await asyncio.sleep(0)
            assert not task.done()

        asyncio.run(submit())

    await asyncio.to_thread(leave)
    stays = asyncio.ensure_future(writer.submit(append("stays")))
    await gate.wait()
    gate.go.set()
    assert await stays == 1


async def test_fault_of_ours_is_answered_and_the_thread_goes_on(
    store: SqliteEngine, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(operations: object) -> list[Any]:
        store.connection.execute("BEGIN IMMEDIATE")
        raise KeyError

    with monkeypatch.context() as patch:
        patch.setattr(store, "apply_batch", broken)
        answers = await submitted(writer, [append("a"), append("b")])
        assert [type(answer) for answer in answers] == [StoreError] * 2
    assert not store.connection.in_transaction
    assert await writer.submit(append("c")) == 1


async def test_every_caller_gets_an_error_object_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, connection = faulty_engine(tmp_path / "other.db", monkeypatch)
    connection.fault = fails("BEGIN", sqlite3.SQLITE_FULL)
    writer = Writer(store)
    answers = await submitted(writer, [append(f"c{n}") for n in range(8)])
    writer.close()
    assert {type(answer) for answer in answers} == {StoreFullError}
    assert len({id(answer) for answer in answers}) == 8
