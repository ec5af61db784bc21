"""Opening the store's file: pragmas, migrations, anchor and the watch over the file itself."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from listen_finalization.domain.codes import Status
from listen_finalization.errors import (
    StoreBrokenError,
    StoreError,
    StoreSchemaError,
)
from listen_finalization.outbox.clock import AnchoredClock, boot_id, boot_micros
from listen_finalization.outbox.faults import fault_of, is_busy
from listen_finalization.outbox.statements import MIGRATIONS, STATEMENTS

LOCK_PATIENCE = 10.0
"""Seconds for which the write lock is tried for before a caller is told that the store is busy."""

_JOURNAL_LIMIT = 64 * 1024 * 1024


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open one connection; transactions are the caller's own, waiting for locks as well.

    Raises `StoreUnavailableError` or `StoreBrokenError`.
    """
    try:
        connection = sqlite3.connect(
            path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=128
        )
        _patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_LIMIT}")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA busy_timeout = 5000")
    except sqlite3.Error as error:
        raise fault_of(error) from error
    return connection


def _patiently(action: Callable[[], object], patience: float = LOCK_PATIENCE) -> None:
    """Run `action` until no other connection is in the way.

    The waits are short and random: SQLite's own busy handler backs off up to 100 ms, so that of
    several processes the unlucky one starves.
    """
    deadline = time.monotonic() + patience
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

    Raises `StoreSchemaError` for a file of a newer version, and leaves it untouched.
    """
    begin(connection)
    try:
        _migrate(connection)
        clock = _anchored(connection)
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        rollback(connection)
        raise fault_of(error) from error
    except StoreError:
        rollback(connection)
        raise
    return clock


def _migrate(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise StoreSchemaError
    for script in MIGRATIONS[version:]:
        for statement in script.split(";\n"):
            if statement.strip():
                connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _anchored(connection: sqlite3.Connection) -> AnchoredClock:
    held = dict(connection.execute(STATEMENTS["read_meta"]).fetchall())
    boot = boot_id()
    if held.get("boot_id") == boot:
        return AnchoredClock(int(held["anchor_wall"]), int(held["anchor_boot"]))
    wall, now = max(time.time_ns() // 1_000, _newest(connection)), boot_micros()
    for key, value in (("boot_id", boot), ("anchor_wall", wall), ("anchor_boot", now)):
        connection.execute(STATEMENTS["write_meta"], (key, str(value)))
    return AnchoredClock(wall, now)


def _newest(connection: sqlite3.Connection) -> int:
    found = (connection.execute(STATEMENTS["newest_instant"], (s,)).fetchone()[0] for s in Status)
    return max((instant for instant in found if instant is not None), default=0)


class FileWatch:
    """Notices that the path no longer leads to the file that is open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity = self._look()

    def _look(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def check(self) -> None:
        """Raise `StoreBrokenError` where the file was deleted or replaced under us."""
        if self._identity is None or self._look() != self._identity:
            raise StoreBrokenError
