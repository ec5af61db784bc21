"""Opening the store's file: pragmas, migrations, anchor and the watch over the file itself."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from listen_finalization.domain.codes import Status
from listen_finalization.domain.job import Instant
from listen_finalization.errors import (
    StoreBrokenError,
    StoreSchemaError,
    StoreUnavailableError,
)
from listen_finalization.outbox.clock import AnchoredClock, boot_id, boot_micros
from listen_finalization.outbox.faults import fault_of, is_busy
from listen_finalization.outbox.statements import MIGRATIONS, STATEMENTS

DATABASE = "listen.db"
"""The file's name in a data directory."""

LOCK_PATIENCE = 10.0
"""Seconds for which the write lock is tried for before a caller is told that the store is busy."""

_JOURNAL_LIMIT = 64 * 1024 * 1024


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open one connection; transactions and checkpoints are the caller's own, waits as well.

    Raises `StoreSchemaError` for a file of a newer version and leaves it untouched, else
    `StoreUnavailableError`, `StoreBusyError` or `StoreBrokenError`.
    """
    try:
        _only_for_us(path)
        connection = sqlite3.connect(
            path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=128
        )
    except OSError as error:
        raise StoreUnavailableError from error
    except sqlite3.Error as error:
        raise fault_of(error) from error
    try:
        _configure(connection, read_only)
    except Exception as error:
        connection.close()
        raise fault_of(error) from error
    return connection


def _only_for_us(path: Path) -> None:
    """Make a new file readable by its owner alone; SQLite gives its journals the same mode."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _configure(connection: sqlite3.Connection, read_only: bool) -> None:
    _patiently(lambda: _schema_version(connection))
    _patiently(lambda: _write_ahead(connection))
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_LIMIT}")
    if read_only:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA busy_timeout = 5000")


def _schema_version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise StoreSchemaError
    return int(version)


def _write_ahead(connection: sqlite3.Connection) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreUnavailableError


def _patiently(action: Callable[[], object]) -> None:
    """Run `action` until no other connection is in the way, for `LOCK_PATIENCE` at most.

    The waits are short and random: SQLite's own busy handler backs off up to 100 ms, so that of
    several processes the unlucky one starves.
    """
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            action()
        except sqlite3.Error as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
            time.sleep(random.uniform(0.0002, 0.002))  # noqa: S311
        else:
            return


def begin(connection: sqlite3.Connection) -> None:
    """Take the write lock. Raises `StoreBusyError` after `LOCK_PATIENCE` seconds."""
    try:
        _patiently(lambda: connection.execute("BEGIN IMMEDIATE"))
    except sqlite3.Error as error:
        raise fault_of(error) from error


def rollback(connection: sqlite3.Connection) -> None:
    """End whatever transaction is still open; an error here leaves nothing open either."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def prepare(connection: sqlite3.Connection) -> AnchoredClock:
    """Bring the schema up to date and return the clock of this boot.

    Writes nothing where both are: a store on a full disk can be opened. Raises `StoreError`.
    """
    begin(connection)
    try:
        _migrate(connection)
        clock = _anchored(connection)
        connection.execute("COMMIT")
    except Exception as error:
        rollback(connection)
        raise fault_of(error) from error
    return clock


def _migrate(connection: sqlite3.Connection) -> None:
    version = _schema_version(connection)
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        for statement in statements_of(script):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {number}")


def statements_of(script: str) -> Iterator[str]:
    """Split a script where SQLite itself sees a statement end: triggers and strings stay whole."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if pending.strip():
        yield pending


def _anchored(connection: sqlite3.Connection) -> AnchoredClock:
    held = dict(connection.execute(STATEMENTS["read_meta"]).fetchall())
    boot = boot_id()
    if held.get("boot_id") == boot:
        return AnchoredClock(int(held["anchor_wall"]), int(held["anchor_boot"]))
    wall, now = max(time.time_ns() // 1_000, _newest(connection)), boot_micros()
    for key, value in (("boot_id", boot), ("anchor_wall", wall), ("anchor_boot", now)):
        connection.execute(STATEMENTS["write_meta"], (key, str(value)))
    return AnchoredClock(wall, now)


def _newest(connection: sqlite3.Connection) -> Instant:
    """Return the latest instant that a row was made, or an unfinished one was touched."""
    made = (connection.execute(STATEMENTS["newest_made"], (status,)) for status in Status)
    touched = connection.execute(STATEMENTS["newest_touched"])
    found = (cursor.fetchone()[0] for cursor in (*made, touched))
    return max((instant for instant in found if instant is not None), default=Instant(0))


class FileWatch:
    """Notices that the path, its WAL or the index of that no longer lead to what is open."""

    def __init__(self, path: Path) -> None:
        self._paths = (str(path), f"{path}-wal", f"{path}-shm")
        self._held = self._look()

    def _look(self) -> tuple[tuple[int, int] | None, ...]:
        return tuple(map(identity, self._paths))

    @property
    def lost(self) -> bool:
        return None in self._held or self._look() != self._held

    def check(self) -> None:
        """Raise `StoreBrokenError` where a file was deleted or replaced under us."""
        if self.lost:
            raise StoreBrokenError


def identity(path: Path | str) -> tuple[int, int] | None:
    """Name the file that a path leads to; None where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - asked at every commit and read; Path costs as much again
    except OSError:
        return None
    return found.st_dev, found.st_ino
