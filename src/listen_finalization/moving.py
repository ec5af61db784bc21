"""Moving a due row that no delivery can help; a row that cannot be decided is set aside."""

from __future__ import annotations

import logging

from listen_finalization.domain.codes import RefusalCode
from listen_finalization.domain.commands import Command
from listen_finalization.domain.decision import Answer, Refused
from listen_finalization.domain.job import seconds
from listen_finalization.errors import (
    StoreBrokenError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreRefusedError,
    StoreSchemaError,
    StoreUnavailableError,
)
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.ports import DueRow, Outbox

SET_ASIDE = seconds(300)

_WHOLE_STORE = (
    StoreBusyError,
    StoreFullError,
    StoreBrokenError,
    StoreUnavailableError,
    StoreSchemaError,
    StoreRefusedError,
)


async def move(outbox: Outbox, signals: Signals, row: DueRow, command: Command) -> Answer | None:
    """Apply a command to the row; None where the row itself is at fault and was set aside.

    Raises `StoreError` where the store is: the row keeps its place then.
    """
    try:
        answer = await outbox.apply(command)
    except _WHOLE_STORE:
        raise
    except StoreError:
        await set_aside(outbox, signals, row)
        return None
    if isinstance(answer, Refused) and answer.code is RefusalCode.SCHEMA_NEWER:
        await set_aside(outbox, signals, row)
        return None
    return answer


async def set_aside(outbox: Outbox, signals: Signals, row: DueRow) -> None:
    """Move the due time of a row that this version cannot read or decide, and tell of it."""
    await outbox.set_aside(row.job_id, row.due, SET_ASIDE)
    signals.emit(Event.ROW_SET_ASIDE, job_id=row.job_id, level=logging.ERROR)
