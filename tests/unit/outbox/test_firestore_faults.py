"""The tables from the Firestore client's errors to the faults that callers know."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.auth.exceptions import DefaultCredentialsError, RefreshError, TransportError

from listen_finalization.errors import (
    ConversationClosedError,
    StoreBusyError,
    StoreError,
    StoreRefusedError,
    StoreUnavailableError,
    ValueRefusedError,
)
from listen_finalization.outbox.firestore.faults import COMMITTING, READING, Table, fault_of

BOTH: list[tuple[Exception, type[StoreError]]] = [
    (exceptions.Aborted("x"), StoreBusyError),
    (exceptions.ResourceExhausted("x"), StoreBusyError),
    (exceptions.DeadlineExceeded("x"), StoreUnavailableError),
    (exceptions.ServiceUnavailable("x"), StoreUnavailableError),
    (exceptions.InternalServerError("x"), StoreUnavailableError),
    (exceptions.Unknown("x"), StoreUnavailableError),
    (exceptions.Cancelled("x"), StoreUnavailableError),
    (exceptions.InvalidArgument("x"), ValueRefusedError),
    (exceptions.PermissionDenied("x"), StoreRefusedError),
    (exceptions.Unauthenticated("x"), StoreRefusedError),
    (exceptions.DataLoss("x"), StoreError),
    (DefaultCredentialsError("x"), StoreRefusedError),
    (RefreshError("x"), StoreRefusedError),
    (TransportError("x"), StoreUnavailableError),
    (RuntimeError("x"), StoreError),
]


@pytest.mark.parametrize("table", [READING, COMMITTING])
@pytest.mark.parametrize(("error", "expected"), BOTH)
def test_error_is_told_as_one_class_and_kept_as_the_cause(
    error: Exception, expected: type[StoreError], table: Table
) -> None:
    fault = fault_of(error, table)
    assert type(fault) is expected
    assert fault.__cause__ is error
    assert "x" not in str(fault).split()


def test_silent_server_is_not_told_as_a_missing_directory() -> None:
    fault = fault_of(exceptions.ServiceUnavailable("x"), READING)
    assert str(fault).startswith("The store does not answer.")


@pytest.mark.parametrize(
    "error",
    [
        exceptions.AlreadyExists("x"),
        exceptions.FailedPrecondition("x"),
        exceptions.NotFound("x"),
    ],
)
def test_guard_that_did_not_hold_is_contention(error: Exception) -> None:
    assert type(fault_of(error, COMMITTING)) is StoreBusyError


@pytest.mark.parametrize("error", [exceptions.NotFound("x"), exceptions.FailedPrecondition("x")])
def test_read_that_finds_no_database_or_index_is_not_repeated(error: Exception) -> None:
    assert type(fault_of(error, READING)) is StoreRefusedError


def test_fault_of_ours_passes_as_it_is() -> None:
    closed = ConversationClosedError()
    assert fault_of(closed, COMMITTING) is closed
