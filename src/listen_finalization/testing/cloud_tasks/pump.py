"""The only part that runs by itself: begins attempts, sends them, cuts them at their deadline."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from listen_finalization.domain.job import SECOND, Instant
from listen_finalization.testing.cloud_tasks.delivery import Sender
from listen_finalization.testing.cloud_tasks.engine import Engine
from listen_finalization.testing.cloud_tasks.faults import FaultKind, Faults
from listen_finalization.testing.cloud_tasks.values import Answer, Dispatch, Ending

_CUT = Answer(ending=Ending.DEADLINE_EXCEEDED)


class Pump:
    """Moves an engine on: at every `wake`, and when its clock says that something is due."""

    def __init__(
        self,
        engine: Engine,
        sender: Sender,
        faults: Faults,
        clock: Callable[[], Instant],
        *,
        flush: Callable[[], None],
    ) -> None:
        """`flush` makes the engine's changes durable, in the step in which they were made."""
        self._engine = engine
        self._sender = sender
        self._faults = faults
        self._clock = clock
        self._flush = flush
        self._woken = asyncio.Event()
        self._sending: dict[int, asyncio.Task[None]] = {}
        self._copies: set[asyncio.Task[Answer]] = set()

    def wake(self) -> None:
        """Look at the clock and the queues again."""
        self._woken.set()

    async def run(self) -> None:
        """Run until cancelled; what is under way then is cut. Raises what `flush` raises."""
        try:
            while True:
                self._woken.clear()
                self._move()
                await self._wait()
        finally:
            under_way = [*self._sending.values(), *self._copies]
            for one in under_way:
                one.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    def begin(self, dispatch: Dispatch) -> None:
        """Send an attempt that the engine has begun, once this step of the event loop is over."""
        self._sending[dispatch.number] = asyncio.create_task(self._attempt(dispatch))
        if self._faults.hit(FaultKind.TWICE) is not None:
            copy = asyncio.create_task(self._sender.send(dispatch))
            self._copies.add(copy)
            copy.add_done_callback(self._copies.discard)

    def _move(self) -> None:
        now = self._clock()
        for late in self._engine.overdue(now):
            self._engine.settle(late, _CUT, now)
            sending = self._sending.get(late.number)
            if sending is not None:
                sending.cancel()
        for dispatch in self._engine.dispatch(now, newest=self._newest):
            self.begin(dispatch)
        self._flush()

    def _newest(self) -> bool:
        return self._faults.hit(FaultKind.UNORDERED) is not None

    async def _wait(self) -> None:
        now = self._clock()
        due = self._engine.next_event(now)
        limit = None if due is None else max(0, due - now) / SECOND
        # Not `wait_for`: before Python 3.12 it can swallow a cancellation.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._woken.wait()

    async def _attempt(self, dispatch: Dispatch) -> None:
        try:
            answer = await self._sender.send(dispatch)
            self._engine.settle(dispatch, answer, self._clock())
        finally:
            del self._sending[dispatch.number]
            self.wake()
