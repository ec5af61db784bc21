"""What a run raised, as one of three kinds of trouble with a bounded code."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from listen_finalization.domain.codes import FailureCode
from listen_finalization.errors import (
    EnvironmentFaultError,
    KeysRejectedError,
    ListenFinalizationError,
    RowUnreadableError,
    StepFailedError,
    StoreError,
    ValueRefusedError,
)
from listen_finalization.processing.pipeline import MarkedByokError

ENVIRONMENT_DELAY = 30.0
"""Seconds until the next hand-over after an environment fault that names no time of its own."""

MAX_ENVIRONMENT_DELAY = 3_600.0


class Trouble(StrEnum):
    """Whose trouble it is: this job's, the user's keys', or everybody's."""

    FAILED = "failed"
    KEYS = "keys"
    ENVIRONMENT = "environment"


class Judged(NamedTuple):
    """The kind, its code, and the seconds until the next hand-over."""

    kind: Trouble
    code: FailureCode
    delay: float = ENVIRONMENT_DELAY


class RunTimeoutError(ListenFinalizationError):
    """The run took longer than one run may take."""


def trouble(fault: Exception, *, holds_keys: bool) -> Judged:
    """Judge an exception; codes and delays that a processor made up are not believed."""
    match fault:
        case StepFailedError(code=code):
            return Judged(Trouble.FAILED, _code(code, FailureCode.PROCESSOR_ERROR))
        case EnvironmentFaultError(code=code, retry_after=wait):
            known = _code(code, FailureCode.ENVIRONMENT_PROVIDER)
            return Judged(Trouble.ENVIRONMENT, known, _delay(wait))
        case MarkedByokError():
            return Judged(Trouble.KEYS, FailureCode.KEYS_MISSING)
        case KeysRejectedError(code=code) if holds_keys:
            return Judged(Trouble.KEYS, _code(code, FailureCode.KEYS_REJECTED))
        case KeysRejectedError():
            return Judged(Trouble.ENVIRONMENT, FailureCode.ENVIRONMENT_CREDENTIALS)
        case RunTimeoutError():
            return Judged(Trouble.FAILED, FailureCode.RUN_TIMEOUT)
        case ValueRefusedError():
            return Judged(Trouble.FAILED, FailureCode.PROCESSOR_INVALID_RESULT)
        case RowUnreadableError():
            return Judged(Trouble.FAILED, FailureCode.CONTENT_UNREADABLE)
        case StoreError():
            return Judged(Trouble.ENVIRONMENT, FailureCode.ENVIRONMENT_STORE)
        case _:
            return Judged(Trouble.FAILED, FailureCode.PROCESSOR_ERROR)


def _code(given: object, otherwise: FailureCode) -> FailureCode:
    return given if isinstance(given, FailureCode) else otherwise


def _delay(given: object) -> float:
    if isinstance(given, int | float) and given > 0:
        return min(max(given, 1.0), MAX_ENVIRONMENT_DELAY)
    return ENVIRONMENT_DELAY
