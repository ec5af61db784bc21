"""Segments, deletions and records on SQLite; the transaction is the caller's."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from listen_finalization.domain.job import Instant
from listen_finalization.errors import ConversationClosedError
from listen_finalization.outbox.codec import dumps
from listen_finalization.outbox.operations import (
    Append,
    DeleteConversation,
    DeleteRow,
    PutRow,
    SetAside,
)
from listen_finalization.outbox.statements import STATEMENTS


class ContentWriter:
    """Carries out every operation that is not a command."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def apply(self, operation: Any, now: Instant) -> Any:
        """Write the operation and return its answer."""
        match operation:
            case Append():
                return self._append(operation, now)
            case DeleteConversation():
                return self._delete_conversation(operation)
            case PutRow():
                return self._put_row(operation)
            case DeleteRow():
                return self._run("delete_row", (operation.kind, operation.key)).rowcount == 1
            case SetAside():
                return self._set_aside(operation, now)
        raise TypeError

    def _append(self, operation: Append, now: Instant) -> int:
        place = (operation.uid, operation.conversation_id)
        self._run("append_open", (*place, operation.language, now))
        version, deleted, discarded = self._one("append_state", place)
        if deleted or discarded:
            raise ConversationClosedError
        changed = self._append_segments(operation, version)
        if not changed and not operation.photos and not operation.byok:
            return int(version)
        after = version + 1 if changed or operation.photos else version
        spoken = any(segment.text.strip() for segment in operation.segments)
        self._run("append_close", (after, spoken, operation.photos, operation.byok, now, *place))
        return int(after)

    def _append_segments(self, operation: Append, version: int) -> int:
        changed = 0
        for index, s in enumerate(operation.segments):
            row = (operation.uid, operation.conversation_id, s.id, (version << 20) + index)
            cursor = self._run("append_segment", (*row, s.speaker, s.start, s.end, s.text))
            changed += cursor.rowcount
        return changed

    def _delete_conversation(self, operation: DeleteConversation) -> bool:
        place = (operation.uid, operation.conversation_id)
        self._run("drop_results_of", place)
        return self._run("delete_conversation", place).rowcount == 1

    def _put_row(self, operation: PutRow) -> int | None:
        value = dumps(dict(operation.value))
        if operation.version == 0:
            cursor = self._run("insert_row", (operation.kind, operation.key, value))
        else:
            guard = (value, operation.kind, operation.key, operation.version)
            cursor = self._run("replace_row", guard)
        return operation.version + 1 if cursor.rowcount == 1 else None

    def _set_aside(self, operation: SetAside, now: Instant) -> bool:
        moved = (now + operation.delay, operation.job_id, operation.seen_due)
        return self._run("set_aside", moved).rowcount == 1

    def _run(self, name: str, values: Sequence[Any]) -> sqlite3.Cursor:
        return self._connection.execute(STATEMENTS[name], values)

    def _one(self, name: str, values: Sequence[Any]) -> Any:
        return self._run(name, values).fetchone()
