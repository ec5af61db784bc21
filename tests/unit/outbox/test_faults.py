"""The table from SQLite's and Python's errors to the faults that callers know."""

from __future__ import annotations

import sqlite3

import pytest

from listen_finalization.domain.job import IllegalJobError
from listen_finalization.errors import (
    ListenFinalizationError,
    StoreBrokenError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    ValueRefusedError,
)
from listen_finalization.outbox.faults import again, fault_of, is_busy

from .stores import sqlite_error

CODES: list[tuple[int, type[StoreError]]] = [
    (sqlite3.SQLITE_BUSY, StoreBusyError),
    (sqlite3.SQLITE_BUSY_RECOVERY, StoreBusyError),
    (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreBusyError),
    (sqlite3.SQLITE_LOCKED, StoreBusyError),
    (sqlite3.SQLITE_PROTOCOL, StoreBusyError),
    (sqlite3.SQLITE_FULL, StoreFullError),
    (sqlite3.SQLITE_IOERR_SHMSIZE, StoreFullError),
    (sqlite3.SQLITE_IOERR_WRITE, StoreUnavailableError),
    (sqlite3.SQLITE_READONLY, StoreUnavailableError),
    (sqlite3.SQLITE_CANTOPEN, StoreUnavailableError),
    (sqlite3.SQLITE_IOERR_FSYNC, StoreBrokenError),
    (sqlite3.SQLITE_IOERR_DIR_FSYNC, StoreBrokenError),
    (sqlite3.SQLITE_READONLY_DBMOVED, StoreBrokenError),
    (sqlite3.SQLITE_CORRUPT, StoreBrokenError),
    (sqlite3.SQLITE_CORRUPT_INDEX, StoreBrokenError),
    (sqlite3.SQLITE_NOTADB, StoreBrokenError),
    (sqlite3.SQLITE_CONSTRAINT_NOTNULL, ValueRefusedError),
    (sqlite3.SQLITE_TOOBIG, ValueRefusedError),
    (sqlite3.SQLITE_ERROR, StoreError),
]


@pytest.mark.parametrize(("code", "kind"), CODES)
def test_code_of_sqlite_has_one_fault(code: int, kind: type[StoreError]) -> None:
    error = sqlite_error(code)
    fault = fault_of(error)
    assert type(fault) is kind
    assert fault.__cause__ is error
    assert str(error) not in str(fault)
    assert is_busy(error) is (kind is StoreBusyError)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OverflowError(), ValueRefusedError),
        (TypeError(), ValueRefusedError),
        (IllegalJobError(), ValueRefusedError),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, ""), ValueRefusedError),
        (sqlite3.ProgrammingError(), ValueRefusedError),
        (KeyError(), StoreError),
        (MemoryError(), StoreError),
    ],
)
def test_value_that_cannot_be_bound_is_told_from_a_fault_of_ours(
    error: Exception, kind: type[StoreError]
) -> None:
    assert type(fault_of(error)) is kind


def test_fault_of_ours_stays_itself() -> None:
    fault = StoreBusyError()
    assert fault_of(fault) is fault


def test_shared_fault_is_another_object_for_every_caller() -> None:
    fault: ListenFinalizationError = fault_of(sqlite_error(sqlite3.SQLITE_FULL))
    twin = again(fault)
    assert (type(twin), twin.__cause__) == (type(fault), fault.__cause__)
    assert twin is not fault
