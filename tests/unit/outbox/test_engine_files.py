"""The file itself: full, read-only, gone, replaced, damaged, or of another version."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from listen_finalization.errors import (
    StoreBrokenError,
    StoreError,
    StoreFullError,
    StoreSchemaError,
    StoreUnavailableError,
)
from listen_finalization.outbox import database
from listen_finalization.outbox.database import connect, statements_of
from listen_finalization.outbox.engine import SqliteEngine
from listen_finalization.outbox.operations import PutRow

from .stores import (
    FaultyConnection,
    append,
    engine,
    fails,
    faulty_engine,
    names_on_disk,
    whole,
)

LARGE = "x" * 20_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB, which only root can make."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a tmpfs needs root")
    home = tmp_path / "disk"
    home.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", home], check=False)
    if made.returncode != 0:
        pytest.skip("this machine does not allow a tmpfs mount")
    yield home
    subprocess.run(["umount", "-l", home], check=True)


def _fill(store: SqliteEngine, size: int) -> tuple[set[str], StoreError]:
    """Write batches until one member is refused; return the accepted names and the fault."""
    accepted: set[str] = set()
    for number in range(1_000):
        names = [f"c{number}-{index}" for index in range(size)]
        replies = store.apply_batch([append(name, LARGE) for name in names])
        accepted |= {name for name, reply in zip(names, replies, strict=True) if reply == 1}
        faults = [reply for reply in replies if isinstance(reply, StoreError)]
        if faults:
            return accepted, faults[0]
    raise AssertionError


@pytest.mark.parametrize("size", [1, 8])
def test_page_limit_refuses_what_does_not_fit_and_lifts_without_restart(
    size: int, path: Path
) -> None:
    store = engine(path)
    store.connection.execute("PRAGMA max_page_count = 100")
    accepted, fault = _fill(store, size)
    assert isinstance(fault, StoreFullError)
    assert names_on_disk(path) == accepted
    assert not store.broken
    store.connection.execute("PRAGMA max_page_count = 100000")
    assert store.apply_batch([append("after", LARGE)]) == [1]
    assert whole(path)


@pytest.mark.parametrize("size", [1, 8])
def test_full_disk_refuses_what_does_not_fit_and_recovers_without_restart(
    size: int, small_disk: Path
) -> None:
    path = small_disk / "store.db"
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 500_000)
    store = engine(path)
    accepted, fault = _fill(store, size)
    assert isinstance(fault, StoreFullError)
    assert accepted
    assert names_on_disk(path) == accepted
    ballast.unlink()
    assert store.apply_batch([append("after")]) == [1]
    store.close()
    assert names_on_disk(path) == {*accepted, "after"}
    assert whole(path)


def test_wal_that_fills_the_disk_by_itself_is_emptied_and_used_again(small_disk: Path) -> None:
    store = engine(small_disk / "store.db")
    [version] = store.apply_batch([PutRow("flag", "one", {"text": "x" * 3_000}, 0)])
    store.suspend()  # the main file has its whole size now, so that only the WAL grows
    refused, in_a_row = 0, 0
    for _ in range(1_000):
        [reply] = store.apply_batch([PutRow("flag", "one", {"text": "x" * 3_000}, version)])
        store.checkpoint()
        full = isinstance(reply, StoreFullError)
        in_a_row = in_a_row + 1 if full else 0
        assert in_a_row <= 1
        refused += full
        version = version if full else reply
    assert refused > 0
    store.close()
    with sqlite3.connect(small_disk / "store.db") as connection:
        assert connection.execute("SELECT version FROM records").fetchone() == (version,)


def test_store_on_a_full_disk_can_be_opened(small_disk: Path) -> None:
    path = small_disk / "store.db"
    engine(path).close()
    held = engine(path)
    _fill(held, 1)
    engine(path).close()


def test_read_only_remount_is_told_and_ends_without_restart(small_disk: Path) -> None:
    path = small_disk / "store.db"
    store = engine(path)
    assert store.apply_batch([append("before")]) == [1]
    store.close()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(StoreUnavailableError):
        engine(path)
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    store = engine(path)
    assert store.apply_batch([append("after"), append("too")]) == [1, 1]
    store.close()
    assert names_on_disk(path) == {"before", "after", "too"}


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_file_deleted_while_open_breaks_the_store(suffix: str, size: int, path: Path) -> None:
    store = engine(path)
    Path(f"{path}{suffix}").unlink()
    replies = store.apply_batch([append(f"c{number}") for number in range(size)])
    assert [type(reply) for reply in replies] == [StoreBrokenError] * size
    assert store.broken


def test_file_replaced_while_open_breaks_the_store_before_a_write_meets_it(path: Path) -> None:
    store = engine(path)
    other = path.with_name("other.db")
    engine(other).close()
    other.replace(path)
    assert store.broken
    [reply] = store.apply_batch([append("c")])
    assert isinstance(reply, StoreBrokenError)


def test_file_replaced_while_suspended_is_not_written(path: Path) -> None:
    store = engine(path)
    store.suspend()
    other = path.with_name("other.db")
    engine(other).close()
    other.replace(path)
    [reply] = store.apply_batch([append("c")])
    assert isinstance(reply, StoreBrokenError)
    assert names_on_disk(path) == set()


def test_suspended_store_opens_itself_again(path: Path) -> None:
    store = engine(path)
    for number in range(3):
        store.suspend()
        store.suspend()
        assert not store.broken
        assert store.apply_batch([append(f"c{number}")]) == [1]
    assert names_on_disk(path) == {"c0", "c1", "c2"}


def test_garbage_instead_of_a_store_is_refused_and_left(path: Path) -> None:
    path.write_bytes(b"not a database " * 1_000)
    before = path.read_bytes()
    with pytest.raises(StoreBrokenError):
        engine(path)
    assert path.read_bytes() == before


def test_garbage_in_the_middle_breaks_the_store_and_answers_nothing(path: Path) -> None:
    store = engine(path)
    store.apply_batch([append(f"c{number}", LARGE) for number in range(40)])
    store.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        for page in range(1, size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 64)
    with pytest.raises(StoreBrokenError):
        engine(path)


def test_garbage_under_an_open_store_is_noticed(path: Path) -> None:
    store = engine(path)
    store.apply_batch([append(f"c{number}", LARGE) for number in range(40)])
    store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    store.connection.execute("PRAGMA shrink_memory")
    with path.open("r+b") as file:
        for page in range(1, path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 64)
    store.connection.execute("PRAGMA cache_size = 0")
    replies = store.apply_batch([append(f"d{number}") for number in range(4)])
    assert [type(reply) for reply in replies] == [StoreBrokenError] * 4
    assert store.broken


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_file_of_a_newer_version_is_refused_and_left_untouched(mode: str, path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("CREATE TABLE meta (newer TEXT)")
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreSchemaError):
        engine(path)
    with pytest.raises(StoreSchemaError):
        connect(path, read_only=True)
    assert path.read_bytes() == before


def test_directory_that_does_not_exist_is_told(path: Path) -> None:
    with pytest.raises(StoreUnavailableError):
        engine(path / "nowhere" / "store.db")


def test_new_file_and_its_journals_are_readable_by_their_owner_alone(path: Path) -> None:
    before = os.umask(0)
    try:
        store = engine(path)
        store.apply_batch([append("c")])
        other = connect(path.with_name("read.db"), read_only=True)
    finally:
        os.umask(before)
    found = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert {"store.db", "store.db-wal", "store.db-shm", "read.db"} <= set(found)
    assert set(found.values()) == {0o600}
    other.close()
    store.close()


def test_second_open_writes_nothing(path: Path) -> None:
    first = engine(path)
    frames = Path(f"{path}-wal").stat().st_size
    engine(path).close()
    assert Path(f"{path}-wal").stat().st_size == frames
    first.close()


def test_frames_that_a_recovery_finds_are_moved_and_flushed_at_open(path: Path) -> None:
    store = engine(path)
    store.apply_batch([append(f"c{number}", LARGE) for number in range(8)])
    copy = path.with_name("copy.db")
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    size = copy.stat().st_size
    recovered = engine(copy)
    assert copy.stat().st_size > size
    recovered.close()
    assert len(names_on_disk(copy)) == 8


def test_refused_flush_at_open_is_a_broken_store(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = fails("PRAGMA wal_checkpoint", sqlite3.SQLITE_IOERR_FSYNC)
    monkeypatch.setattr(FaultyConnection, "fault", staticmethod(fault))
    with pytest.raises(StoreBrokenError):
        faulty_engine(path, monkeypatch)


def test_failed_migration_leaves_no_table(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "CREATE TABLE a (x TEXT);\nCREATE TABLE a (x TEXT);\n"
    monkeypatch.setattr(database, "MIGRATIONS", (script,))
    with pytest.raises(StoreError):
        engine(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
        assert connection.execute("PRAGMA user_version").fetchone() == (0,)


def test_migrations_are_split_where_statements_end() -> None:
    trigger = "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  DELETE FROM b;\n  DELETE FROM c;\nEND;\n"
    text = "-- first; second;\nCREATE TABLE a (x TEXT DEFAULT ';\n');\n"
    last = "CREATE TABLE z (y TEXT)"
    assert list(statements_of(text + trigger + last)) == [text, trigger, last]
