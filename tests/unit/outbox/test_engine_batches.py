"""A batch: one commit, many fates; nothing is answered that is not on disk, nor the reverse."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import Instant
from listen_finalization.errors import (
    ConversationClosedError,
    StoreBrokenError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    ValueRefusedError,
)
from listen_finalization.outbox import database
from listen_finalization.outbox.content import ContentWriter
from listen_finalization.outbox.engine import CHECKPOINT_EVERY, SqliteEngine
from listen_finalization.outbox.operations import Append, DeleteConversation

from .stores import (
    admit,
    append,
    commits,
    engine,
    fails,
    faulty_engine,
    names_on_disk,
    whole,
)

FULL = sqlite3.SQLITE_FULL
FLUSH = sqlite3.SQLITE_IOERR_FSYNC
NAMES = [f"c{number}" for number in range(8)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def test_64_operations_share_one_commit(path: Path) -> None:
    store = engine(path)
    seen = commits(store.connection)
    replies = store.apply_batch([append(f"c{number}") for number in range(64)])
    assert (replies, len(seen)) == ([1] * 64, 1)
    assert len(names_on_disk(path)) == 64


def test_operations_of_a_batch_see_each_other_in_order(path: Path) -> None:
    store = engine(path)
    replies = store.apply_batch([append("c"), admit("c"), admit("c")])
    assert replies[0] == 1
    assert [reply.changed for reply in replies[1:]] == [True, False]


def test_error_of_one_member_does_not_touch_the_others(path: Path) -> None:
    store = engine(path)
    store.apply_batch([append("gone"), DeleteConversation("user", "gone")])
    seen = commits(store.connection)
    batch = [append("a"), append("gone", number=2), append("b", "\ud83d"), append("c")]
    first, closed, refused, last = store.apply_batch(batch)
    assert (first, last, len(seen)) == (1, 1, 1)
    assert isinstance(closed, ConversationClosedError)
    assert isinstance(refused, ValueRefusedError)
    assert names_on_disk(path) == {"a", "c", "gone"}


@pytest.mark.parametrize("size", [1, 2, 8])
def test_unexpected_exception_is_its_own_members_alone(
    size: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = engine(path)
    real = ContentWriter._append

    def broken(self: ContentWriter, operation: Append, now: Instant) -> int:
        version = real(self, operation, now)
        if operation.conversation_id == "c0":
            raise KeyError
        return version

    monkeypatch.setattr(ContentWriter, "_append", broken)
    replies = store.apply_batch([append(name) for name in NAMES[:size]])
    assert type(replies[0]) is StoreError
    assert replies[1:] == [1] * (size - 1)
    assert not store.connection.in_transaction
    assert names_on_disk(path) == set(NAMES[1:size])


@pytest.mark.parametrize("code", [FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_NOMEM])
def test_fault_that_ends_the_shared_transaction_lets_each_be_decided_alone(
    code: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, connection = faulty_engine(path, monkeypatch)
    seen = commits(connection)
    left = [3]

    def once_in_the_third(sql: str) -> int | None:
        left[0] -= sql.startswith("INSERT INTO segments")
        return code if left[0] == 0 and sql.startswith("INSERT INTO segments") else None

    connection.fault = once_in_the_third
    assert store.apply_batch([append(name) for name in NAMES]) == [1] * 8
    assert len(seen) == 8
    assert names_on_disk(path) == set(NAMES)


def test_alone_only_the_member_that_cannot_be_written_fails(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, connection = faulty_engine(path, monkeypatch)
    seen = [0]

    def every_second(sql: str) -> int | None:
        seen[0] += sql.startswith("INSERT INTO segments")
        return FULL if sql.startswith("INSERT INTO segments") and seen[0] % 2 else None

    connection.fault = every_second
    replies = store.apply_batch([append(name) for name in NAMES])
    written = {name for name, reply in zip(NAMES, replies, strict=True) if reply == 1}
    assert names_on_disk(path) == written
    assert sum(isinstance(reply, StoreFullError) for reply in replies) == 8 - len(written) > 0


def test_error_that_leaves_the_transaction_open_undoes_its_member_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, connection = faulty_engine(path, monkeypatch)
    connection.ends_transaction = False
    connection.fault = fails("INSERT INTO segments", FULL, times=1)
    replies = store.apply_batch([append(name) for name in NAMES])
    assert isinstance(replies[0], StoreFullError)
    assert replies[1:] == [1] * 7
    assert names_on_disk(path) == set(NAMES[1:])


def test_failed_commit_lets_each_be_decided_alone_on_a_fresh_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, connection = faulty_engine(path, monkeypatch)
    connection.fault = fails("COMMIT", FULL, times=1)
    version, admitted = store.apply_batch([append("c"), admit("c")])
    assert version == 1
    assert isinstance(admitted, Decision)
    assert admitted.changed
    assert names_on_disk(path) == {"c"}


@pytest.mark.parametrize("size", [1, 8])
def test_commit_that_fails_for_lack_of_space_leaves_nothing_and_needs_no_restart(
    size: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, connection = faulty_engine(path, monkeypatch)
    connection.fault = fails("COMMIT", FULL)
    replies = store.apply_batch([append(name) for name in NAMES[:size]])
    assert all(isinstance(reply, StoreFullError) for reply in replies)
    assert names_on_disk(path) == set()
    connection.fault = fails("", FULL, times=0)
    assert store.apply_batch([append("c")]) == [1]
    assert not store.broken


@pytest.mark.parametrize("size", [1, 8])
def test_failed_flush_breaks_the_store_and_nothing_more_is_answered(
    size: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, connection = faulty_engine(path, monkeypatch)
    connection.fault = fails("COMMIT", FLUSH, times=1)
    batch = [append(name) for name in NAMES[:size]]
    for _ in range(2):
        replies = store.apply_batch(batch)
        assert [type(reply) for reply in replies] == [StoreBrokenError] * size
        assert store.broken
    assert names_on_disk(path) == set()


@pytest.mark.parametrize("size", [1, 8])
@pytest.mark.parametrize("where", ["INSERT INTO segments", "BEGIN"])
def test_damage_met_anywhere_breaks_the_store(
    where: str, size: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, connection = faulty_engine(path, monkeypatch)
    connection.ends_transaction = False
    connection.fault = fails(where, sqlite3.SQLITE_CORRUPT, times=1)
    replies = store.apply_batch([append(name) for name in NAMES[:size]])
    assert [type(reply) for reply in replies] == [StoreBrokenError] * size
    assert store.broken
    assert names_on_disk(path) == set()


def test_rollback_that_fails_breaks_the_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, connection = faulty_engine(path, monkeypatch)
    connection.ends_transaction = False
    io_error = sqlite3.SQLITE_IOERR
    connection.fault = lambda sql: io_error if sql in ("COMMIT", "ROLLBACK") else None
    [reply] = store.apply_batch([append("c")])
    assert isinstance(reply, StoreUnavailableError)
    assert store.broken


def test_batch_that_cannot_begin_answers_every_caller_a_fault_of_its_own(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCK_PATIENCE", 0.02)
    store = engine(path)
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        replies = store.apply_batch([append(name) for name in NAMES])
        other.execute("ROLLBACK")
    assert [type(reply) for reply in replies] == [StoreBusyError] * 8
    assert len({id(reply) for reply in replies}) == 8
    assert "locked" not in str(replies[0])
    assert store.apply_batch([append("c")]) == [1]


def test_lock_lost_between_members_is_waited_for_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCK_PATIENCE", 0.0)
    store, connection = faulty_engine(path, monkeypatch)
    tried: list[str] = []

    def then_busy(sql: str) -> int | None:
        if sql == "COMMIT":
            return FULL if not tried else None
        if sql == "BEGIN IMMEDIATE":
            tried.append(sql)
            return sqlite3.SQLITE_BUSY if len(tried) > 1 else None
        return None

    failed_once = fails("COMMIT", FULL, times=1)
    connection.fault = lambda sql: failed_once(sql) or then_busy(sql)
    replies = store.apply_batch([append(name) for name in NAMES])
    assert [type(reply) for reply in replies] == [StoreBusyError] * 8
    assert len(tried) == 2


def _write_until_a_checkpoint_is_due(store: SqliteEngine) -> None:
    for batch in range(CHECKPOINT_EVERY // 64):
        store.apply_batch([append(f"c{batch}-{n}", "words " * 100) for n in range(64)])


def test_checkpoint_moves_the_frames_once_enough_was_written(path: Path) -> None:
    store = engine(path)
    size = path.stat().st_size
    store.apply_batch([append("c")])
    store.checkpoint()
    assert path.stat().st_size == size
    _write_until_a_checkpoint_is_due(store)
    store.checkpoint()
    assert path.stat().st_size > size
    assert whole(path)


@pytest.mark.parametrize(("code", "broken"), [(FLUSH, True), (FULL, False)])
def test_failed_flush_of_a_checkpoint_is_not_hidden(
    code: int, broken: bool, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, connection = faulty_engine(path, monkeypatch)
    _write_until_a_checkpoint_is_due(store)
    connection.fault = fails("PRAGMA wal_checkpoint", code)
    store.checkpoint()
    assert store.broken is broken


def test_fault_outside_of_a_batch_leaves_no_transaction_open(path: Path) -> None:
    store = engine(path)
    store.connection.execute("BEGIN IMMEDIATE")
    store.abort()
    assert not store.connection.in_transaction
    assert store.apply_batch([append("c")]) == [1]
