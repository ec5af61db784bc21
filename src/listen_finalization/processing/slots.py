"""Where steps run: a fixed number of threads off the event loop, each kept by what runs in it."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeGuard, TypeVar

T = TypeVar("T")

_Call = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class Slot:
    """One daemon thread. A call that outlives its caller keeps the slot until it returns."""

    def __init__(self, free: Callable[[Slot], None]) -> None:
        self._free = free
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._running = False
        self._given_back = False
        threading.Thread(target=self._run, name="step", daemon=True).start()

    @property
    def outlived(self) -> bool:
        """Whether the run has ended while its step still runs."""
        return self._given_back and self._running

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run `function` in the slot's thread; a cancelled wait does not stop it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._lock:
            self._running = True
        self._calls.put((lambda: function(*arguments), loop, future))
        return await future

    def take(self) -> None:
        self._given_back = False

    def give_back(self) -> None:
        """End the run's hold; the slot is free once nothing runs in it."""
        with self._lock:
            self._given_back = True
            idle = not self._running
        if idle:
            self._free(self)

    def close(self) -> None:
        self._calls.put(None)

    def _run(self) -> None:
        while self._serve(self._calls.get()):
            pass

    def _serve(self, waiting: _Call | None) -> bool:
        """Carry out one call; nothing of it is kept afterwards, as it may hold keys."""
        if waiting is None:
            return False
        call, loop, future = waiting
        resolve = _outcome(call, future)
        with self._lock:
            self._running = False
            idle = self._given_back
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits
            loop.call_soon_threadsafe(resolve)
            if idle:
                loop.call_soon_threadsafe(self._free, self)
        return True


def _outcome(call: Callable[[], T], future: asyncio.Future[T]) -> Callable[[], None]:
    try:
        value = call()
    except BaseException as error:  # noqa: BLE001 - carried to the caller, whatever it is
        fault = error if _carried(error) else RuntimeError()
        return lambda: None if future.done() else future.set_exception(fault)
    return lambda: None if future.done() else future.set_result(value)


def _carried(error: BaseException) -> TypeGuard[Exception]:
    """Whether a future takes the error: no call to exit, no group of such, no StopIteration."""
    return isinstance(error, Exception) and not isinstance(error, StopIteration)


class Slots:
    """All slots of a process; used from one event loop."""

    def __init__(self, size: int) -> None:
        self._idle: list[Slot] = []
        self._size = size
        self._made: list[Slot] = []

    @property
    def free(self) -> int:
        return self._size - len(self._made) + len(self._idle)

    @property
    def outlived(self) -> int:
        """How many slots are held by steps whose runs have ended."""
        return sum(slot.outlived for slot in self._made)

    @property
    def exhausted(self) -> bool:
        """Whether every slot is held by a step that outlived its run."""
        return self.outlived >= self._size

    def take(self) -> Slot | None:
        """Return a free slot; None where all are held."""
        if not self.free:
            return None
        if self._idle:
            slot = self._idle.pop()
        else:
            slot = Slot(self._idle.append)
            self._made.append(slot)
        slot.take()
        return slot

    def close(self) -> None:
        """End the idle threads; one that is still busy ends with the process."""
        for slot in self._made:
            slot.close()
