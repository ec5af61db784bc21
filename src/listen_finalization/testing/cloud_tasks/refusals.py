"""How the queue says no: a gRPC status by its name, and a text without content."""

from __future__ import annotations

from enum import StrEnum

from listen_finalization.errors import ListenFinalizationError


class Code(StrEnum):
    """The statuses of gRPC other than OK, as `grpc.StatusCode` names them."""

    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    ABORTED = "ABORTED"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"
    UNAVAILABLE = "UNAVAILABLE"
    DATA_LOSS = "DATA_LOSS"
    UNAUTHENTICATED = "UNAUTHENTICATED"


class CallRefusedError(ListenFinalizationError):
    """The queue refuses the call; nothing was changed."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(detail)
        self.code = code


def invalid(detail: str) -> CallRefusedError:
    """Return the refusal of a value that no repeat will make acceptable."""
    return CallRefusedError(Code.INVALID_ARGUMENT, detail)
