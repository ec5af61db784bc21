"""Raw sqlite3 without product code: the bases that the product is measured against."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from listen_finalization.outbox.engine import CHECKPOINT_EVERY
from listen_finalization.outbox.writer import BATCH

Statement = tuple[str, tuple[Any, ...]]
Member = tuple[Statement, ...]
"""The statements of one transition, without those that begin and end it."""

_Waiting = tuple[Member, asyncio.AbstractEventLoop, "asyncio.Future[None]"]


def connect(path: Path) -> sqlite3.Connection:
    """Open a file as the product does: WAL, FULL, own checkpoints, statements cached."""
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=128
    )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return connection


def execute(connection: sqlite3.Connection, member: Member) -> None:
    """Run the statements and read every row that they return."""
    for sql, values in member:
        connection.execute(sql, values).fetchall()


class Commits:
    """The base `commits`: one row, one commit, one after the other."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        self._connection.execute("PRAGMA wal_autocheckpoint = 1000")
        self._connection.execute("CREATE TABLE base (n INTEGER PRIMARY KEY, v TEXT) STRICT")

    def block(self, count: int) -> float:
        """Return the seconds that `count` commits took."""
        began = time.perf_counter()
        for _ in range(count):
            self._connection.execute("INSERT INTO base (v) VALUES ('one row')")
        return time.perf_counter() - began

    def close(self) -> None:
        self._connection.close()


class Shared:
    """A connection that runs members under shared commits, and moves the WAL as the product."""

    def __init__(self, path: Path, *, savepoints: bool) -> None:
        self._connection = connect(path)
        self._savepoints = savepoints
        self._written = 0

    def commit(self, batch: Sequence[Member]) -> None:
        """Run the members in one transaction that is on disk on return."""
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        for member in batch:
            if self._savepoints and len(batch) > 1:
                run("SAVEPOINT member")
                execute(self._connection, member)
                run("RELEASE member")
            else:
                execute(self._connection, member)
        run("COMMIT")
        self._checkpoint(len(batch))

    def _checkpoint(self, members: int) -> None:
        self._written += members
        if self._written >= CHECKPOINT_EVERY:
            self._written = 0
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def close(self) -> None:
        self._connection.close()


class RawWriter:
    """One thread over `Shared`: what waits while a commit runs shares the next, as many as 64."""

    def __init__(self, path: Path, *, savepoints: bool) -> None:
        self._shared = Shared(path, savepoints=savepoints)
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.commits = 0

    async def submit(self, member: Member) -> None:
        """Return once the member is on disk."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._queue.put((member, loop, future))
        await future

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
        self._shared.close()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch = [first]
            while len(batch) < BATCH and not self._queue.empty():
                following = self._queue.get()
                if following is None:
                    self._queue.put(None)
                    break
                batch.append(following)
            self._commit(batch)

    def _commit(self, batch: list[_Waiting]) -> None:
        try:
            self._shared.commit([member for member, _, _ in batch])
            fault = None
        except Exception as error:  # noqa: BLE001 - told to every waiting caller
            fault = error
        self.commits += 1
        futures = [future for _, _, future in batch]
        batch[0][1].call_soon_threadsafe(_resolve, futures, fault)


def _resolve(futures: list[asyncio.Future[None]], fault: Exception | None) -> None:
    for future in futures:
        if fault is not None:
            future.set_exception(fault)
        else:
            future.set_result(None)


class RawReader:
    """Two reading threads, each with a connection of its own; a read is one snapshot."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._pool = ThreadPoolExecutor(2)

    async def read(self, member: Member) -> list[Any]:
        """Return the rows of the member's last statement."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, member)

    def _read(self, member: Member) -> list[Any]:
        connection = self._connection()
        connection.execute("BEGIN")
        rows: list[Any] = []
        for sql, values in member:
            rows = connection.execute(sql, values).fetchall()
        connection.execute("COMMIT")
        return rows

    def _connection(self) -> sqlite3.Connection:
        held: sqlite3.Connection | None = getattr(self._held, "connection", None)
        if held is None:
            held = self._held.connection = connect(self._path)
            self._connections.append(held)
        return held

    def close(self) -> None:
        self._pool.shutdown(wait=True)
        for connection in self._connections:
            connection.close()
