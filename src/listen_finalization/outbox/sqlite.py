"""The embedded store: three ports over one SQLite file that several processes may open."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from listen_finalization.domain.codes import Status, Step
from listen_finalization.domain.commands import Command
from listen_finalization.domain.content import Content, Segment
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import Answer
from listen_finalization.domain.job import Instant, Job
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import StoreBrokenError, StoreUnavailableError
from listen_finalization.outbox import queries
from listen_finalization.outbox.database import connect
from listen_finalization.outbox.engine import SqliteEngine
from listen_finalization.outbox.faults import fault_of
from listen_finalization.outbox.operations import (
    Append,
    DeleteConversation,
    DeleteRow,
    Operation,
    PutRow,
    SetAside,
)
from listen_finalization.outbox.reader import THREADS, Reader
from listen_finalization.outbox.writer import Writer
from listen_finalization.ports import DuePage, DueRow, JobPage, Record, Row


class SqliteStore:
    """One open file: a writing thread, reading threads, and what a fork must not share.

    Before a fork every handle is closed: SQLite believes a child to hold the locks that its parent
    took, so that the parent could delete the WAL under it. Parent and child open the file again
    at their next call. A child of a fork that Python's hooks did not see is refused.
    """

    def __init__(
        self,
        path: Path,
        policy: Policy,
        *,
        clock: Callable[[], Instant] | None = None,
    ) -> None:
        """Open or create the file. Raises the faults of `SqliteEngine`."""
        self._arguments = (path, policy, clock)
        self._open()
        self.outbox = SqliteOutbox(self)
        self.conversations = SqliteConversations(self)
        self.records = SqliteRecords(self)
        _STORES.add(self)

    def _open(self) -> None:
        path, policy, clock = self._arguments
        self._engine = SqliteEngine(path, policy, clock=clock)
        self._writer = Writer(self._engine)
        self._reader = Reader(path)
        self._watcher: sqlite3.Connection | None = None
        self._watching = threading.Lock()
        self._closed = False
        self._pid = os.getpid()

    @property
    def broken(self) -> bool:
        """Whether this process must end because its store cannot be trusted."""
        return self._engine.broken

    def now(self) -> Instant:
        """Return the store's time, for reading; decisions take it under the write lock."""
        return self._engine.clock()

    async def write(self, operation: Operation) -> Any:
        """Carry out one operation, durable on return. Raises `StoreError`."""
        self._own()
        return await self._writer.submit(operation)

    async def read(self, query: Callable[..., Any], *arguments: Any) -> Any:
        """Run one of `queries` in a snapshot. Raises `StoreError`."""
        self._own()
        if self._engine.broken:
            raise StoreBrokenError
        try:
            return await self._reader.read(lambda connection: query(connection, *arguments))
        except StoreBrokenError:
            self._engine.distrust()
            raise

    def data_version(self) -> int:
        """Return a number that changes when any connection has committed. Raises `StoreError`."""
        self._own()
        with self._watching:
            if self._closed:
                raise StoreUnavailableError
            if self._watcher is None:
                self._watcher = connect(self._arguments[0], read_only=True)
            try:
                return int(self._watcher.execute("PRAGMA data_version").fetchone()[0])
            except sqlite3.Error as error:
                raise fault_of(error) from error

    def close(self) -> None:
        """Finish what was submitted and close the file. May be called again."""
        if self._pid != os.getpid():
            return
        self._writer.close()
        self._reader.close()
        self._engine.close()
        with self._watching:
            self._closed = True
            self._stop_watching()

    def _stop_watching(self) -> None:
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None

    def _own(self) -> None:
        if self._pid == os.getpid():
            return
        if self._closed or not self._engine.asleep:
            raise StoreUnavailableError
        self._open()

    def before_fork(self) -> None:
        """Wait for a quiet moment, keep it, and close everything."""
        self._watching.acquire()
        self._writer.at_rest.acquire()
        for _ in range(THREADS):
            self._reader.at_rest.acquire()
        self._stop_watching()
        self._reader.suspend()
        self._engine.suspend()

    def after_fork_in_parent(self) -> None:
        for _ in range(THREADS):
            self._reader.at_rest.release()
        self._writer.at_rest.release()
        self._watching.release()

    def after_fork_in_child(self) -> None:
        """Replace the locks: a thread that is not here may have been inside of one."""
        self._watching = threading.Lock()
        self._writer.at_rest = threading.Lock()
        self._reader.at_rest = threading.Semaphore(THREADS)


_STORES: weakref.WeakSet[SqliteStore] = weakref.WeakSet()


def _each(action: Callable[[SqliteStore], None]) -> Callable[[], None]:
    def run() -> None:
        for store in list(_STORES):
            action(store)

    return run


os.register_at_fork(
    before=_each(SqliteStore.before_fork),
    after_in_parent=_each(SqliteStore.after_fork_in_parent),
    after_in_child=_each(SqliteStore.after_fork_in_child),
)


class SqliteOutbox:
    """`ports.Outbox` on SQLite."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def apply(self, command: Command) -> Answer:
        answer: Answer = await self._store.write(command)
        return answer

    async def get(self, job_id: str) -> Job | None:
        job: Job | None = await self._store.read(queries.job, job_id)
        return job

    async def find(self, uid: str, conversation_id: str) -> tuple[Conversation, Job | None] | None:
        found: tuple[Conversation, Job | None] | None = await self._store.read(
            queries.standing, uid, conversation_id
        )
        return found

    async def due(self, limit: int, *, after: DueRow | None = None) -> DuePage:
        now = self._store.now()
        page: DuePage = await self._store.read(queries.due_page, now, limit, after)
        return page

    async def leases(self, limit: int) -> tuple[DueRow, ...]:
        rows: tuple[DueRow, ...] = await self._store.read(queries.leases, limit)
        return rows

    async def list(
        self, *, status: Status | None = None, limit: int = 50, cursor: str | None = None
    ) -> JobPage:
        page: JobPage = await self._store.read(queries.job_page, status, limit, cursor)
        return page

    async def counts(self) -> Mapping[Status, int]:
        counted: Mapping[Status, int] = await self._store.read(queries.counts)
        return counted

    async def oldest(self) -> Mapping[Status, Instant]:
        found: Mapping[Status, Instant] = await self._store.read(queries.oldest)
        return found

    async def set_aside(self, job_id: str, seen_due: Instant, delay: int) -> bool:
        moved: bool = await self._store.write(SetAside(job_id, seen_due, delay))
        return moved


class SqliteConversations:
    """`ports.Conversations` on SQLite."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def append(
        self,
        uid: str,
        conversation_id: str,
        segments: Sequence[Segment],
        *,
        language: str = "en",
        photos: int = 0,
        byok: bool = False,
    ) -> int:
        operation = Append(uid, conversation_id, tuple(segments), language, photos, byok)
        version: int = await self._store.write(operation)
        return version

    async def find(self, uid: str, conversation_id: str) -> Record | None:
        record: Record | None = await self._store.read(queries.record, uid, conversation_id)
        return record

    async def content(self, uid: str, conversation_id: str) -> Content | None:
        content: Content | None = await self._store.read(queries.content, uid, conversation_id)
        return content

    async def results(self, job_id: str) -> Mapping[tuple[Step, int], str]:
        found: Mapping[tuple[Step, int], str] = await self._store.read(queries.results, job_id)
        return found

    async def delete(self, uid: str, conversation_id: str) -> bool:
        deleted: bool = await self._store.write(DeleteConversation(uid, conversation_id))
        return deleted


class SqliteRecords:
    """`ports.Records` on SQLite."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def get(self, kind: str, key: str) -> Row | None:
        row: Row | None = await self._store.read(queries.row_of, kind, key)
        return row

    async def put_if(
        self, kind: str, key: str, value: Mapping[str, Any], *, version: int
    ) -> Row | None:
        written: int | None = await self._store.write(PutRow(kind, key, value, version))
        return None if written is None else Row(key, value, written)

    async def list(self, kind: str, *, prefix: str = "", limit: int = 100) -> tuple[Row, ...]:
        rows: tuple[Row, ...] = await self._store.read(queries.rows_of, kind, prefix, limit)
        return rows

    async def delete(self, kind: str, key: str) -> bool:
        deleted: bool = await self._store.write(DeleteRow(kind, key))
        return deleted
