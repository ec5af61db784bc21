"""str-fork: a store that was open before a fork; parent and child both go on, nothing is lost."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from listen_finalization.domain.content import Segment
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import StoreUnavailableError
from listen_finalization.outbox.sqlite import SqliteStore

from .loads import POLICY, Worker, adds_up


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(path, Policy())
    yield made
    made.close()


def _append(store: SqliteStore, name: str) -> int:
    segment = Segment("s", "a", 0.0, 1.0, "words")
    return asyncio.run(store.conversations.append("user", name, [segment]))


def _names(path: Path) -> set[str]:
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {name for (name,) in connection.execute("SELECT conversation_id FROM segments")}


class Child:
    """A forked process that takes one step each time it is told, and says how that went."""

    def __init__(self, steps: list[Callable[[], object]]) -> None:
        self._go, go = os.pipe()
        done, self._done = os.pipe()
        self._tell, self._hear = go, done
        self.pid = os.fork()
        if self.pid == 0:
            self._live(steps)

    def _live(self, steps: list[Callable[[], object]]) -> None:
        for step in steps:
            os.read(self._go, 1)
            try:
                step()
            except BaseException as fault:  # noqa: BLE001 - told to the parent by name
                os.write(self._done, type(fault).__name__.encode().ljust(40))
            else:
                os.write(self._done, b"done".ljust(40))
        os._exit(0)

    def step(self) -> str:
        os.write(self._tell, b"x")
        return os.read(self._hear, 40).decode().strip()

    def end(self) -> None:
        assert os.waitpid(self.pid, 0)[1] == 0


def _locks(pid: int) -> list[str]:
    """Return the kernel's locks of a process."""
    lines = Path("/proc/locks").read_text("ascii").splitlines()
    return [line for line in lines if line.split()[4] == str(pid)]


def test_child_and_parent_write_in_turns(store: SqliteStore, path: Path) -> None:
    _append(store, "before")
    child = Child([lambda: _append(store, "child-1"), lambda: _append(store, "child-2")])
    _append(store, "parent-1")
    assert child.step() == "done"
    _append(store, "parent-2")
    assert child.step() == "done"
    child.end()
    _append(store, "parent-3")
    expected = {"before", "child-1", "child-2", "parent-1", "parent-2", "parent-3"}
    assert _names(path) == expected


def test_commit_of_a_child_outlives_its_parents_close(store: SqliteStore, path: Path) -> None:
    """SQLite must not believe that the child holds its parent's locks: the WAL would go."""
    _append(store, "before")
    child = Child([lambda: _append(store, "child-1"), lambda: _append(store, "child-2")])
    assert child.step() == "done"
    assert _locks(child.pid)
    store.close()
    assert child.step() == "done"
    child.end()
    assert _names(path) == {"before", "child-1", "child-2"}


def test_child_that_only_closes_or_ends_takes_nothing_from_the_parent(
    store: SqliteStore, path: Path
) -> None:
    _append(store, "before")
    child = Child([store.close])
    assert child.step() == "done"
    child.end()
    _append(store, "after")
    assert not store.broken
    assert _names(path) == {"before", "after"}


def test_grandchild_of_a_child_that_never_used_the_store_writes(
    store: SqliteStore, path: Path
) -> None:
    def fork_again() -> None:
        grandchild = Child([lambda: _append(store, "grandchild")])
        assert grandchild.step() == "done"
        grandchild.end()

    child = Child([fork_again])
    assert child.step() == "done"
    child.end()
    assert _names(path) == {"grandchild"}


def test_fork_with_a_watcher_and_readers_open_carries_none_of_them(
    store: SqliteStore, path: Path
) -> None:
    _append(store, "before")
    asyncio.run(store.outbox.counts())
    store.data_version()
    child = Child([lambda: _held_nothing(path)])
    assert child.step() == "done"
    child.end()
    before = store.data_version()
    _append(store, "after")
    assert store.data_version() != before


def _held_nothing(path: Path) -> None:
    for entry in Path("/proc/self/fd").iterdir():
        try:
            assert not str(entry.readlink()).startswith(str(path))
        except FileNotFoundError:
            continue


def test_fork_that_the_hooks_did_not_see_is_refused(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_pid", os.getpid() + 1)
    with pytest.raises(StoreUnavailableError):
        _append(store, "child")


def test_store_closed_before_the_fork_stays_closed_in_the_child(store: SqliteStore) -> None:
    store.close()
    child = Child([lambda: _append(store, "child")])
    assert child.step() == "StoreUnavailableError"
    child.end()


def _forked_work(store: SqliteStore, number: int, tell: Any) -> None:
    worker = Worker(store, number, conversations=16)
    asyncio.run(worker.run(100))
    store.close()
    tell.put(worker.tally)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_mixed_load_of_forked_workers_adds_up_when_they_stop_one_by_one(path: Path) -> None:
    context = multiprocessing.get_context("fork")
    store = SqliteStore(path, POLICY)
    tell = context.Queue()
    workers = []
    for number in range(4):
        worker = context.Process(target=_forked_work, args=(store, number, tell))
        worker.start()
        workers.append(worker)
    own = Worker(store, 99, conversations=16)
    asyncio.run(own.run(100))
    tallies = [own.tally, *(tell.get(timeout=60) for _ in workers)]
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    store.close()
    assert [tally.faults for tally in tallies] == [[]] * 5
    adds_up(path, tallies)
