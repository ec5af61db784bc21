"""Errors of SQLite mapped, in one table, to the faults that callers know."""

from __future__ import annotations

import sqlite3

from listen_finalization.errors import (
    StoreBrokenError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)

_BROKEN_EXTENDED = frozenset(
    {
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_DIR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
        sqlite3.SQLITE_READONLY_DBMOVED,
    }
)
_BY_PRIMARY: dict[int, type[StoreError]] = {
    sqlite3.SQLITE_BUSY: StoreBusyError,
    sqlite3.SQLITE_LOCKED: StoreBusyError,
    sqlite3.SQLITE_FULL: StoreFullError,
    sqlite3.SQLITE_READONLY: StoreUnavailableError,
    sqlite3.SQLITE_IOERR: StoreUnavailableError,
    sqlite3.SQLITE_CANTOPEN: StoreUnavailableError,
    sqlite3.SQLITE_PERM: StoreUnavailableError,
    sqlite3.SQLITE_CORRUPT: StoreBrokenError,
    sqlite3.SQLITE_NOTADB: StoreBrokenError,
}


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection holds the lock, so that a later try may succeed."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def fault_of(error: sqlite3.Error) -> StoreError:
    """Return the fault for an SQLite error.

    A failed flush breaks the store for this process: frames whose flush was refused may come
    alive at recovery, so nothing more may be answered on top of them (contract 16).
    """
    code = getattr(error, "sqlite_errorcode", 0)
    kind = StoreBrokenError if code in _BROKEN_EXTENDED else _BY_PRIMARY.get(code & 0xFF)
    fault = (kind or StoreError)()
    fault.__cause__ = error
    return fault
