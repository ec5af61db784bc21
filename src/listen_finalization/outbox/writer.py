"""The thread around the engine: callers that wait while a commit runs share the next one."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Sequence
from typing import Any

from listen_finalization.errors import StoreUnavailableError
from listen_finalization.outbox.engine import Reply, SqliteEngine
from listen_finalization.outbox.faults import fault_of
from listen_finalization.outbox.operations import Operation

BATCH = 64
"""How many transitions share one commit at most (contract 16)."""

PATIENCE = 0.002
"""Seconds for which a commit waits at most for the callers of the last one."""

_Waiting = tuple[Operation, asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class Writer:
    """Runs the engine in one thread; `submit` may be called from any event loop."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._closed = False
        self._took = 0.0
        self._answered = 1
        self._gate = threading.Lock()
        self.at_rest = threading.Lock()
        """Held while a batch runs, so that a fork can wait for a quiet moment."""
        self._thread = threading.Thread(target=self._run, name="outbox-writer", daemon=True)
        self._thread.start()

    async def submit(self, operation: Operation) -> Any:
        """Return the operation's answer after its commit, or raise its error.

        A caller that is cancelled while it waits does not know whether the commit happened.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._gate:
            if self._closed:
                raise StoreUnavailableError
            self._queue.put((operation, loop, future))
        return await future

    def close(self) -> None:
        """Finish what was submitted, then end the thread. May be called again."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        last = False
        while not last:
            batch, last = self._next_batch()
            if batch:
                self._carry_out(batch)

    def _carry_out(self, batch: list[_Waiting]) -> None:
        began = time.monotonic()
        with self.at_rest:
            replies = self._apply([operation for operation, _, _ in batch])
        self._took = time.monotonic() - began
        self._answered = len(batch)
        _answer(batch, replies)
        self._tidy()

    def _tidy(self) -> None:
        """Do what no caller waits for."""
        with self.at_rest:
            self._engine.checkpoint()

    def _next_batch(self) -> tuple[list[_Waiting], bool]:
        """Take what waits; callers that shared the last commit are given time to share this one.

        They work side by side, so their next transitions come soon; the wait is at most what the
        last commit took, and `PATIENCE`. A caller that was alone waits for nobody.
        """
        batch: list[_Waiting] = []
        waiting = self._queue.get()
        until = time.monotonic() + min(self._took, PATIENCE)
        while waiting is not None:
            batch.append(waiting)
            if len(batch) == BATCH:
                return batch, False
            patience = until - time.monotonic() if len(batch) < self._answered else 0.0
            try:
                waiting = self._queue.get(patience > 0, max(patience, 0.0) or None)
            except queue.Empty:
                return batch, False
        return batch, True

    def _apply(self, operations: Sequence[Operation]) -> list[Reply]:
        try:
            return self._engine.apply_batch(operations)
        except Exception as error:  # noqa: BLE001 - a fault of ours: the callers get it, the thread goes on
            self._engine.abort()
            return [fault_of(error) for _ in operations]


def _answer(batch: Sequence[_Waiting], replies: Sequence[Reply]) -> None:
    """Hand every reply to its caller's loop, with one wake-up for each loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Reply]]] = {}
    for (_, loop, future), reply in zip(batch, replies, strict=True):
        by_loop.setdefault(loop, []).append((future, reply))
    for loop, answers in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits there
            loop.call_soon_threadsafe(_resolve, answers)


def _resolve(answers: Sequence[tuple[asyncio.Future[Any], Reply]]) -> None:
    for future, reply in answers:
        if future.done():
            continue
        if isinstance(reply, Exception):
            future.set_exception(reply)
        else:
            future.set_result(reply)
