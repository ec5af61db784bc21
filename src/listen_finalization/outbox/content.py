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
    refuse_unstorable,
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
                return self._put_row(operation, now)
            case DeleteRow():
                return self._run("delete_row", (operation.kind, operation.key)).rowcount == 1
            case SetAside():
                return self._set_aside(operation, now)
        raise TypeError

    def _append(self, operation: Append, now: Instant) -> int:
        refuse_unstorable(
            operation.uid, operation.conversation_id, operation.segments, operation.photos
        )
        place = (operation.uid, operation.conversation_id)
        self._run("append_open", (*place, operation.language, now))
        version, has_content, deleted, discarded = self._one("append_state", place)
        if deleted or discarded:
            raise ConversationClosedError
        changed = self._append_segments(operation, version)
        if not changed and not operation.photos and not operation.byok:
            return int(version)
        after = version + 1 if changed or operation.photos else version
        spoken = self._spoken(operation, bool(has_content))
        self._run("append_close", (after, spoken, operation.photos, operation.byok, now, *place))
        return int(after)

    def _append_segments(self, operation: Append, version: int) -> int:
        changed = 0
        for index, s in enumerate(operation.segments):
            row = (operation.uid, operation.conversation_id, s.id, (version << 20) + index)
            cursor = self._run("append_segment", (*row, s.speaker, s.start, s.end, s.text))
            changed += cursor.rowcount
        return changed

    def _spoken(self, operation: Append, before: bool) -> bool:
        """Say whether a segment with words is stored; only an emptied one makes this a search."""
        words = [bool(segment.text.strip()) for segment in operation.segments]
        if all(words):
            return before or bool(words)
        if not before and not any(words):
            return False
        place = (operation.uid, operation.conversation_id)
        return any(text.strip() for (text,) in self._run("read_texts", place))

    def _delete_conversation(self, operation: DeleteConversation) -> bool:
        place = (operation.uid, operation.conversation_id)
        self._run("drop_results_of", place)
        return self._run("delete_conversation", place).rowcount == 1

    def _put_row(self, operation: PutRow, now: Instant) -> int | None:
        """Write the record; a new one starts at the time, so that no old version fits it again."""
        value = dumps(dict(operation.value))
        after = operation.version + 1 if operation.version else max(now, 1)
        if operation.version == 0:
            cursor = self._run("insert_row", (operation.kind, operation.key, value, after))
        else:
            guard = (value, operation.kind, operation.key, operation.version)
            cursor = self._run("replace_row", guard)
        return after if cursor.rowcount == 1 else None

    def _set_aside(self, operation: SetAside, now: Instant) -> bool:
        moved = (now + operation.delay, operation.job_id, operation.seen_due)
        return self._run("set_aside", moved).rowcount == 1

    def _run(self, name: str, values: Sequence[Any]) -> sqlite3.Cursor:
        return self._connection.execute(STATEMENTS[name], values)

    def _one(self, name: str, values: Sequence[Any]) -> Any:
        return self._run(name, values).fetchone()
