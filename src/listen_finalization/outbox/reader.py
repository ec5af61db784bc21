"""Reading threads: a read never waits for the writer, nor the event loop for the disk."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from listen_finalization.errors import StoreUnavailableError
from listen_finalization.outbox.database import connect
from listen_finalization.outbox.faults import fault_of

T = TypeVar("T")

THREADS = 2


class Reader:
    """A few read-only connections, each bound to a thread of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self.at_rest = threading.Semaphore(THREADS)
        """Held once for each running read; a fork takes all of it."""
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="outbox-reader")
        self._closed = False

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run `query` in one read snapshot off the loop. Raises `StoreError` for its faults."""
        if self._closed:
            raise StoreUnavailableError
        loop = asyncio.get_running_loop()
        try:
            waiting = loop.run_in_executor(self._pool, self._run, query)
        except RuntimeError as error:  # closed in between by another thread
            raise StoreUnavailableError from error
        return await waiting

    def _run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        with self.at_rest:
            try:
                connection = self._connection()
                connection.execute("BEGIN")
                try:
                    return query(connection)
                finally:
                    if connection.in_transaction:
                        connection.execute("COMMIT")
            except Exception as error:
                raise fault_of(error) from error

    def _connection(self) -> sqlite3.Connection:
        held: sqlite3.Connection | None = getattr(self._held, "connection", None)
        if held is None:
            held = self._held.connection = connect(self._path, read_only=True)
            self._connections.append(held)
        return held

    def suspend(self) -> None:
        """Close the connections; the next read of each thread opens its own again.

        Only for a caller that holds all of `at_rest`.
        """
        self._held = threading.local()
        while self._connections:
            self._connections.pop().close()

    def close(self) -> None:
        """End the threads and their connections. May be called again."""
        self._closed = True
        self._pool.shutdown(wait=True)
        self.suspend()
