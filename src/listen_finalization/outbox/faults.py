"""Errors of SQLite and of binding mapped, in one table, to the faults that callers know."""

from __future__ import annotations

import sqlite3

from listen_finalization.errors import (
    ListenFinalizationError,
    StoreBrokenError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    ValueRefusedError,
)

_BROKEN_EXTENDED = frozenset(
    {
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_DIR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
        sqlite3.SQLITE_IOERR_DATA,
        sqlite3.SQLITE_IOERR_CORRUPTFS,
        sqlite3.SQLITE_READONLY_DBMOVED,
    }
)
_FULL_EXTENDED = frozenset({sqlite3.SQLITE_IOERR_SHMSIZE})
"""The index of the WAL could not grow: on a full disk this comes before SQLITE_FULL."""

_BY_PRIMARY: dict[int, type[StoreError]] = {
    sqlite3.SQLITE_BUSY: StoreBusyError,
    sqlite3.SQLITE_LOCKED: StoreBusyError,
    sqlite3.SQLITE_PROTOCOL: StoreBusyError,
    sqlite3.SQLITE_FULL: StoreFullError,
    sqlite3.SQLITE_READONLY: StoreUnavailableError,
    sqlite3.SQLITE_IOERR: StoreUnavailableError,
    sqlite3.SQLITE_CANTOPEN: StoreUnavailableError,
    sqlite3.SQLITE_PERM: StoreUnavailableError,
    sqlite3.SQLITE_CORRUPT: StoreBrokenError,
    sqlite3.SQLITE_NOTADB: StoreBrokenError,
    sqlite3.SQLITE_CONSTRAINT: ValueRefusedError,
    sqlite3.SQLITE_MISMATCH: ValueRefusedError,
    sqlite3.SQLITE_TOOBIG: ValueRefusedError,
}
_UNSTORABLE = (
    ValueError,
    TypeError,
    OverflowError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection holds the lock, so that a later try may succeed."""
    return _by_code(error) is StoreBusyError


def fault_of(error: Exception) -> ListenFinalizationError:
    """Return the fault for an error: one of ours as it is, any other mapped, as its cause.

    A failed flush breaks the store for this process: frames whose flush was refused may come
    alive at recovery, so nothing more may be answered on top of them (contract 16).
    """
    if isinstance(error, ListenFinalizationError):
        return error
    kind = _by_code(error) or (ValueRefusedError if isinstance(error, _UNSTORABLE) else StoreError)
    fault = kind()
    fault.__cause__ = error
    return fault


def again(fault: ListenFinalizationError) -> ListenFinalizationError:
    """Return the same fault for another caller: a raised exception is not shared."""
    twin = type(fault)()
    twin.__cause__ = fault.__cause__
    return twin


def _by_code(error: Exception) -> type[StoreError] | None:
    code = getattr(error, "sqlite_errorcode", 0)
    if code in _BROKEN_EXTENDED:
        return StoreBrokenError
    if code in _FULL_EXTENDED:
        return StoreFullError
    return _BY_PRIMARY.get(code & 0xFF)
