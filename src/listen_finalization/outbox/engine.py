"""The synchronous core of the embedded store: a batch of operations, one commit, many fates.

Threads are a shell around it (`writer.py`), so that a simulator can drive it step by step.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

from listen_finalization.domain.commands import Checkpoint, Command
from listen_finalization.domain.job import Instant
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import (
    ListenFinalizationError,
    StoreBrokenError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from listen_finalization.outbox.commands import CommandWriter
from listen_finalization.outbox.content import ContentWriter
from listen_finalization.outbox.database import (
    FileWatch,
    begin,
    connect,
    identity,
    prepare,
    rollback,
)
from listen_finalization.outbox.faults import again, fault_of
from listen_finalization.outbox.operations import Append, Operation

Reply = Any
"""An operation's answer, or the exception that it is to raise."""

CHECKPOINT_EVERY = 256
"""Operations after which the WAL's frames are moved into the main file; long text counts more."""

_WEIGHT_OF = 32_768
"""Characters of text that count as one operation more, so that the WAL stays within some MiB."""

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
        self._path = path
        self._policy = policy
        self._given_clock = clock
        self._broken = False
        self._closed = False
        self._written = 0
        self._open()
        self._file = identity(path)
        self._settle()

    def _open(self) -> None:
        self.connection = connect(self._path)
        try:
            anchored = prepare(self.connection)
        except StoreError:
            self.connection.close()
            raise
        self.clock: Callable[[], Instant] = self._given_clock or anchored
        self._commands = CommandWriter(self.connection, self._policy)
        self._content = ContentWriter(self.connection)
        self._watch = FileWatch(self._path)
        self.asleep = False
        """Whether `suspend` closed the file, so that nothing open is carried through a fork."""

    @property
    def broken(self) -> bool:
        """Whether a flush failed or the file went: only a new process may go on."""
        return self._broken or (not self.asleep and self._watch.lost)

    def distrust(self) -> None:
        """Remember that a reader met a file that cannot be trusted."""
        self._broken = True

    def close(self) -> None:
        """Close the file for good. May be called again."""
        self._closed = True
        self.suspend()

    def suspend(self) -> None:
        """Close the file until the next batch opens it again. May be called again."""
        self.connection.close()
        self.asleep = True

    def abort(self) -> None:
        """Leave no transaction open after a fault that `apply_batch` did not expect."""
        self._failed(StoreError())

    def apply_batch(self, operations: Sequence[Operation]) -> list[Reply]:
        """Carry out the operations in order under one commit and answer each of them.

        No answer is given before the commit is on disk. Where a fault ends the shared
        transaction or the commit fails, each operation is decided again, alone, on a fresh read.
        An operation that raised gets its error as answer; the others are not touched by it.
        """
        fault = self._woken()
        if fault is not None:
            return [again(fault) for _ in operations]
        self._written += sum(map(_weight, operations))
        replies = self._together(operations) if len(operations) > 1 else None
        return self._one_by_one(operations) if replies is None else replies

    def checkpoint(self) -> None:
        """Move the WAL's frames into the main file, once enough was written.

        SQLite's own checkpoint runs inside a commit and hides a failed flush; this one breaks the
        store for it. On a full disk it is tried after each batch, because it makes the WAL's room
        usable again; a busy reader only leaves the frames where they are.
        """
        if self._written >= CHECKPOINT_EVERY and not self._broken and not self.asleep:
            self._move_frames()

    def _settle(self) -> None:
        """Move what a recovery found into the main file: its flush may have been refused."""
        self._move_frames()
        if self._broken:
            self.connection.close()
            raise StoreBrokenError

    def _move_frames(self) -> None:
        try:
            self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            self._written = 0
        except sqlite3.Error as error:
            self._failed(error)

    def _woken(self) -> ListenFinalizationError | None:
        """Open the file again after a fork; say why nothing can be written."""
        if self._closed:
            return StoreUnavailableError()
        if self.asleep and not self._broken:
            self._broken = identity(self._path) != self._file
        if self._broken:
            return StoreBrokenError()
        try:
            if self.asleep:
                self._open()
        except StoreError as fault:
            return fault
        return None

    def _together(self, operations: Sequence[Operation]) -> list[Reply] | None:
        """Answer the batch after its commit; None when each member must be decided alone."""
        try:
            begin(self.connection)
        except StoreError as fault:
            self._failed(fault)
            return [again(fault) for _ in operations]
        try:
            now = self.clock()
            replies = [self._in_savepoint(operation, now) for operation in operations]
            self._commit()
        except Exception as error:  # noqa: BLE001 - each member is decided again and told its own
            self._failed(error)
            return None
        return replies

    def _in_savepoint(self, operation: Operation, now: Instant) -> Reply:
        execute = self.connection.execute
        execute("SAVEPOINT member")
        try:
            reply = self._carry_out(operation, now)
        except Exception as error:
            reply = fault_of(error)
            if isinstance(reply, StoreBrokenError) or not self.connection.in_transaction:
                raise
            execute("ROLLBACK TO member")
        execute("RELEASE member")
        return reply

    def _one_by_one(self, operations: Sequence[Operation]) -> list[Reply]:
        """Decide each alone; once the lock cannot be had, the rest is not made to wait for it."""
        replies: list[Reply] = []
        for operation in operations:
            busy = bool(replies) and isinstance(replies[-1], StoreBusyError)
            replies.append(StoreBusyError() if busy else self._alone(operation))
        return replies

    def _alone(self, operation: Operation) -> Reply:
        if self._broken:
            return StoreBrokenError()
        try:
            begin(self.connection)
            reply = self._carry_out(operation, self.clock())
            self._commit()
        except Exception as error:  # noqa: BLE001 - the caller's answer, whatever it is
            return self._failed(error)
        return reply

    def _failed(self, error: Exception) -> ListenFinalizationError:
        """Leave no transaction open, remember a broken store, and return the caller's fault."""
        fault = fault_of(error)
        self._broken = self._broken or isinstance(fault, StoreBrokenError)
        if isinstance(fault, StoreFullError):
            self._written = CHECKPOINT_EVERY
        try:
            rollback(self.connection)
        except sqlite3.Error:
            self._broken = True
        return fault

    def _commit(self) -> None:
        """Commit, then prove that what was committed is what the path leads to."""
        self.connection.execute("COMMIT")
        self._watch.check()

    def _carry_out(self, operation: Any, now: Instant) -> Reply:
        if type(operation) in _COMMANDS:
            return self._commands.apply(operation, now)
        return self._content.apply(operation, now)


def _weight(operation: Operation) -> int:
    """Count an operation by what it adds to the WAL."""
    match operation:
        case Append(segments=segments):
            return 1 + sum(len(segment.text) for segment in segments) // _WEIGHT_OF
        case Checkpoint(results=results):
            return 1 + sum(len(result.payload) for result in results) // _WEIGHT_OF
        case _:
            return 1
