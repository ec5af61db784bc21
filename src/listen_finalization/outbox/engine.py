"""The synchronous core of the embedded store: a batch of operations, one commit, many fates.

Threads are a shell around it (`writer.py`), so that a simulator can drive it step by step.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

from listen_finalization.domain.commands import Command
from listen_finalization.domain.job import IllegalJobError, Instant
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import ListenFinalizationError, StoreBrokenError, StoreError
from listen_finalization.outbox.commands import CommandWriter
from listen_finalization.outbox.content import ContentWriter
from listen_finalization.outbox.database import FileWatch, begin, connect, prepare, rollback
from listen_finalization.outbox.faults import fault_of
from listen_finalization.outbox.operations import Operation

Reply = Any
"""An operation's answer, or the exception that it is to raise."""

_COMMANDS = frozenset(get_args(Command))


class SqliteEngine:
    """Owns the one writing connection of a process. Not thread-safe: one caller at a time."""

    def __init__(
        self, path: Path, policy: Policy, *, clock: Callable[[], Instant] | None = None
    ) -> None:
        """Open or create the file.

        Raises `StoreSchemaError`, `StoreUnavailableError`, `StoreBusyError` or
        `StoreBrokenError`; `clock` replaces the anchored clock of the file.
        """
        self.connection = connect(path)
        try:
            anchored = prepare(self.connection)
        except StoreError:
            self.connection.close()
            raise
        self.clock: Callable[[], Instant] = clock or anchored
        self._commands = CommandWriter(self.connection, policy)
        self._content = ContentWriter(self.connection)
        self._watch = FileWatch(path)
        self._broken = False

    @property
    def broken(self) -> bool:
        """Whether a flush failed or the file went: only a new process may go on."""
        return self._broken

    def close(self) -> None:
        self.connection.close()

    def abort(self) -> None:
        """Leave no transaction open after a fault that `apply_batch` did not expect."""
        self._failed(StoreError())

    def apply_batch(self, operations: Sequence[Operation]) -> list[Reply]:
        """Carry out the operations in order under one commit and answer each of them.

        No answer is given before the commit is on disk. Where a fault ends the shared
        transaction or the commit fails, each operation is decided again, alone, on a fresh read.
        An operation that raised gets its error as answer; the others are not touched by it.
        """
        replies = self._together(operations) if len(operations) > 1 else None
        if replies is None:
            replies = [self._alone(operation) for operation in operations]
        return replies

    def _together(self, operations: Sequence[Operation]) -> list[Reply] | None:
        """Answer the batch after its commit; None when each member must be decided alone."""
        if self._broken:
            return [StoreBrokenError() for _ in operations]
        try:
            begin(self.connection)
        except StoreError as fault:
            return [fault for _ in operations]
        try:
            now = self.clock()
            replies = [self._in_savepoint(operation, now) for operation in operations]
            self._commit()
        except (sqlite3.Error, StoreBrokenError) as error:
            self._failed(error)
            return None
        return replies

    def _in_savepoint(self, operation: Operation, now: Instant) -> Reply:
        execute = self.connection.execute
        execute("SAVEPOINT member")
        try:
            reply = self._carry_out(operation, now)
        except sqlite3.Error as error:
            if not self.connection.in_transaction:
                raise
            execute("ROLLBACK TO member")
            reply = fault_of(error)
        except (ListenFinalizationError, IllegalJobError) as error:
            execute("ROLLBACK TO member")
            reply = error
        execute("RELEASE member")
        return reply

    def _alone(self, operation: Operation) -> Reply:
        if self._broken:
            return StoreBrokenError()
        try:
            begin(self.connection)
            reply = self._carry_out(operation, self.clock())
            self._commit()
        except (sqlite3.Error, ListenFinalizationError, IllegalJobError) as error:
            return self._failed(error)
        return reply

    def _failed(self, error: Exception) -> Exception:
        """Leave no transaction open, remember a broken store, and return the caller's fault."""
        fault = fault_of(error) if isinstance(error, sqlite3.Error) else error
        self._broken = self._broken or isinstance(fault, StoreBrokenError)
        try:
            rollback(self.connection)
        except sqlite3.Error:
            self._broken = True
        return fault

    def _commit(self) -> None:
        self._watch.check()
        self.connection.execute("COMMIT")

    def _carry_out(self, operation: Any, now: Instant) -> Reply:
        if type(operation) in _COMMANDS:
            return self._commands.apply(operation, now)
        return self._content.apply(operation, now)
