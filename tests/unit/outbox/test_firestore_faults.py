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

BOTH: list[tuple[type[Exception], type[StoreError]]] = [
    (exceptions.Aborted, StoreBusyError),
    (exceptions.ResourceExhausted, StoreBusyError),
    (exceptions.DeadlineExceeded, StoreUnavailableError),
    (exceptions.ServiceUnavailable, StoreUnavailableError),
    (exceptions.InternalServerError, StoreUnavailableError),
    (exceptions.Unknown, StoreUnavailableError),
    (exceptions.Cancelled, StoreUnavailableError),
    (exceptions.InvalidArgument, ValueRefusedError),
    (exceptions.PermissionDenied, StoreRefusedError),
    (exceptions.Unauthenticated, StoreRefusedError),
    (exceptions.DataLoss, StoreError),
    (DefaultCredentialsError, StoreRefusedError),
    (RefreshError, StoreRefusedError),
    (TransportError, StoreUnavailableError),
    (RuntimeError, StoreError),
]


@pytest.mark.parametrize("table", [READING, COMMITTING])
@pytest.mark.parametrize(("kind", "expected"), BOTH)
def test_error_is_told_as_one_class_and_kept_as_the_cause(
    kind: type[Exception], expected: type[StoreError], table: Table
) -> None:
    error = kind("x")
    fault = fault_of(error, table)
    assert type(fault) is expected
    assert fault.__cause__ is error
    assert "x" not in str(fault).split()


def test_silent_server_is_not_told_as_a_missing_directory() -> None:
    kind: type[Exception] = exceptions.ServiceUnavailable
    fault = fault_of(kind("x"), READING)
    assert str(fault).startswith("The store does not answer.")


@pytest.mark.parametrize(
    "kind", [exceptions.AlreadyExists, exceptions.FailedPrecondition, exceptions.NotFound]
)
def test_guard_that_did_not_hold_is_contention(kind: type[Exception]) -> None:
    assert type(fault_of(kind("x"), COMMITTING)) is StoreBusyError


@pytest.mark.parametrize("kind", [exceptions.NotFound, exceptions.FailedPrecondition])
def test_read_that_finds_no_database_or_index_is_not_repeated(kind: type[Exception]) -> None:
    assert type(fault_of(kind("x"), READING)) is StoreRefusedError


def test_fault_of_ours_passes_as_it_is() -> None:
    closed = ConversationClosedError()
    assert fault_of(closed, COMMITTING) is closed
