"""Errors of the Firestore client mapped, in one table for each kind of call, to our faults."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from google.api_core import exceptions
from google.auth.exceptions import GoogleAuthError, TransportError

from listen_finalization.errors import (
    ListenFinalizationError,
    StoreBusyError,
    StoreError,
    StoreRefusedError,
    StoreUnavailableError,
    ValueRefusedError,
)

Table = Mapping[type[Exception], type[StoreError]]

_ALWAYS: dict[type[Exception], type[StoreError]] = {
    exceptions.Aborted: StoreBusyError,
    exceptions.ResourceExhausted: StoreBusyError,
    exceptions.TooManyRequests: StoreBusyError,
    exceptions.DeadlineExceeded: StoreUnavailableError,
    exceptions.GatewayTimeout: StoreUnavailableError,
    exceptions.ServiceUnavailable: StoreUnavailableError,
    exceptions.InternalServerError: StoreUnavailableError,
    exceptions.Unknown: StoreUnavailableError,
    exceptions.Cancelled: StoreUnavailableError,
    exceptions.InvalidArgument: ValueRefusedError,
    exceptions.OutOfRange: ValueRefusedError,
    exceptions.PermissionDenied: StoreRefusedError,
    exceptions.Unauthenticated: StoreRefusedError,
    exceptions.MethodNotImplemented: StoreRefusedError,
    TransportError: StoreUnavailableError,
    GoogleAuthError: StoreRefusedError,
}

_SILENT = "The store does not answer. Send the command again; check the network if it stays so."

READING: Table = MappingProxyType(
    _ALWAYS
    | {
        exceptions.NotFound: StoreRefusedError,
        exceptions.FailedPrecondition: StoreRefusedError,
    }
)
"""A missing document is an answer: not found is the database, a failed precondition an index."""

COMMITTING: Table = MappingProxyType(
    _ALWAYS
    | {
        exceptions.AlreadyExists: StoreBusyError,
        exceptions.FailedPrecondition: StoreBusyError,
        exceptions.NotFound: StoreBusyError,
    }
)
"""Guards of a commit that did not hold: read again and decide again.

A database that is not there says not found as well; the read of the next attempt tells.
"""


def fault_of(error: Exception, table: Table) -> ListenFinalizationError:
    """Return the fault for an error: one of ours as it is, any other mapped, as its cause."""
    if isinstance(error, ListenFinalizationError):
        return error
    kinds = (table[kind] for kind in type(error).__mro__ if kind in table)
    kind = next(kinds, StoreError)
    fault = kind(_SILENT if kind is StoreUnavailableError else None)
    fault.__cause__ = error
    return fault
