"""Recording the statements that the product executes, with their values, for the floors.

The product's own connections are opened through a subclass that notes every `execute`. SQLite's
trace callback counts beside it, so that a statement which went another way is noticed. The pass
that records is never one that is measured, and does not wait for the disk.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Iterator
from typing import Any
from unittest import mock

from bench.raw import Member, Statement
from listen_finalization.outbox.statements import STATEMENTS

_FIRST = frozenset(
    STATEMENTS[name]
    for name in ("read_conversation_and_job", "read_job_and_conversation", "read_content")
)
"""The read with which each transition, and a run's read of the content, begins."""

_BORDERS = ("BEGIN", "SAVEPOINT", "RELEASE", "COMMIT", "ROLLBACK")


class RecordingError(RuntimeError):
    """The product executed statements that were not recorded."""


class _Recorder(sqlite3.Connection):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.log: list[Statement] = []
        self.traced = 0
        self.set_trace_callback(self._trace)

    def _trace(self, sql: str) -> None:
        self.traced += not sql.startswith("--")

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Note the statement and run it; only the wait for the disk is left out."""
        self.log.append((sql, tuple(map(_plain, parameters))))
        hasty = "PRAGMA synchronous = OFF" if sql == "PRAGMA synchronous = FULL" else sql
        return super().execute(hasty, parameters)


def _plain(value: Any) -> Any:
    """Return the value as sqlite3 binds it fastest: the floor pays for no enum and no bool."""
    if isinstance(value, str):
        return str.__str__(value)
    return int(value) if isinstance(value, bool) else value


class Recording:
    """What the connections of one pass executed."""

    def __init__(self) -> None:
        self.connections: list[_Recorder] = []

    def open(self, real: Any, *arguments: Any, **named: Any) -> sqlite3.Connection:
        connection = real(*arguments, factory=_Recorder, **named)
        self.connections.append(connection)
        return connection  # type: ignore[no-any-return]

    def check(self) -> None:
        """Raise `RecordingError` where SQLite ran more statements than were noted."""
        for connection in self.connections:
            if connection.traced > len(connection.log):
                raise RecordingError(f"{connection.traced} ran, {len(connection.log)} are noted")

    @property
    def savepoints(self) -> bool:
        """Whether the product puts members of a shared commit into savepoints."""
        return any(sql.startswith("SAVEPOINT") for c in self.connections for sql, _ in c.log)

    def members(self) -> dict[tuple[Any, ...], list[Member]]:
        """Return transitions and content reads by the key that their first read names.

        The key is (uid, conversation id) for an admission and a read of the content, (job id,)
        for every other verb. What has no such first read (records, due pages) is left out.
        """
        found: dict[tuple[Any, ...], list[Member]] = {}
        for connection in self.connections:
            for member in _split(connection.log):
                found.setdefault(member[0][1], []).append(member)
        return found


def _split(log: list[Statement]) -> Iterator[Member]:
    member: list[Statement] = []
    for sql, values in log:
        border = sql.startswith(_BORDERS)
        if (border or sql in _FIRST) and member:
            yield tuple(member)
            member = []
        if sql in _FIRST or (member and not border):
            member.append((sql, values))
    if member:
        yield tuple(member)


@contextlib.contextmanager
def recording() -> Iterator[Recording]:
    """Record every connection that is opened inside."""
    held = Recording()
    opened = functools.partial(held.open, sqlite3.connect)
    with mock.patch.object(sqlite3, "connect", opened):
        yield held
    held.check()
