"""The store as its users hold it: readers, the watch over other commits, close, and faults."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from listen_finalization.domain.codes import Step
from listen_finalization.domain.commands import Checkpoint, ClaimJob, StepResult
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import (
    RowUnreadableError,
    StoreBrokenError,
    StoreBusyError,
    StoreUnavailableError,
)
from listen_finalization.outbox import database
from listen_finalization.outbox.sqlite import SqliteStore

from .stores import admit, append


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(path, Policy())
    yield made
    made.close()


async def test_reads_do_not_wait_for_a_writer(store: SqliteStore, path: Path) -> None:
    await store.write(append("c"))
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE conversations SET language = 'de'")
        found = await asyncio.wait_for(store.conversations.content("user", "c"), 5)
        other.execute("ROLLBACK")
    assert found is not None
    assert found.language == "en"


async def test_lock_held_by_another_is_a_busy_store_in_bounded_time(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCK_PATIENCE", 0.05)
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError) as told:
            await asyncio.wait_for(store.write(append("c")), 5)
        other.execute("ROLLBACK")
    assert "database is locked" not in str(told.value)
    assert await store.write(append("c")) == 1


async def test_data_version_moves_with_every_commit_and_with_nothing_else(
    store: SqliteStore, path: Path
) -> None:
    before = store.data_version()
    await store.outbox.counts()
    assert store.data_version() == before
    await store.write(append("mine"))
    mine = store.data_version()
    assert mine != before
    other = SqliteStore(path, Policy())
    await other.write(append("theirs"))
    other.close()
    assert store.data_version() != mine


async def test_closed_store_answers_that_it_is_unavailable(store: SqliteStore) -> None:
    store.data_version()
    store.close()
    store.close()
    with pytest.raises(StoreUnavailableError):
        await store.write(append("c"))
    with pytest.raises(StoreUnavailableError):
        await store.outbox.counts()
    with pytest.raises(StoreUnavailableError):
        store.data_version()


async def test_broken_store_answers_no_reads_either(store: SqliteStore, path: Path) -> None:
    await store.write(append("c"))
    await asyncio.to_thread(path.unlink)
    assert store.broken
    with pytest.raises(StoreBrokenError):
        await store.conversations.find("user", "c")


async def test_damage_met_by_a_reader_breaks_the_store(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(connection: sqlite3.Connection) -> None:
        error = sqlite3.DatabaseError("injected")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error

    with pytest.raises(StoreBrokenError):
        await store.read(damaged)
    assert store.broken


async def test_published_record_that_is_no_json_is_unreadable(
    store: SqliteStore, path: Path
) -> None:
    await store.write(append("c"))
    with sqlite3.connect(path) as other:
        other.execute("UPDATE conversations SET structured = '{'")
    with pytest.raises(RowUnreadableError):
        await store.conversations.find("user", "c")


def _wal_size(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


async def test_long_texts_are_moved_out_of_the_wal_before_it_grows(
    store: SqliteStore, path: Path
) -> None:
    largest = 0
    for number in range(60):
        await store.write(append(f"c{number}", "x" * 1_000_000))
        largest = max(largest, _wal_size(path))
    assert 1_000_000 <= largest < 16 * 1024 * 1024


async def test_long_results_are_moved_out_of_the_wal_before_it_grows(
    store: SqliteStore, path: Path
) -> None:
    await store.write(append("c"))
    job = (await store.write(admit("c"))).job
    claim = (await store.write(ClaimJob(job.job_id, 1, "a" * 32))).job.claim
    largest = 0
    for chunk in range(60):
        result = StepResult(Step.ENRICH, "x" * 1_000_000, chunk)
        answer = await store.write(Checkpoint(claim, results=(result,)))
        assert isinstance(answer, Decision) and answer.changed
        largest = max(largest, _wal_size(path))
    assert 1_000_000 <= largest < 16 * 1024 * 1024
