"""A loop that runs at its start and then at intervals, and that no failure of a turn ends."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from listen_finalization.observe.signals import Event, Signals

SPREAD = 0.1
"""Share of the interval by which each wait differs, so that replicas drift apart (contract 12)."""


class Periodic:
    """Calls `turn` every `interval` seconds, give or take a tenth, each turn within `limit`."""

    def __init__(
        self,
        turn: Callable[[], Awaitable[object]],
        signals: Signals,
        *,
        interval: float,
        limit: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._turn = turn
        self._signals = signals
        self._interval = interval
        self._limit = limit
        self._sleep = sleep
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin in the background; the first turn does not delay the caller."""
        if self._task is None:
            self._task = asyncio.ensure_future(self._loop())

    async def stop(self) -> None:
        """End the loop, its present turn included. May be called again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _loop(self) -> None:
        while True:
            await self._once()
            await self._sleep(self._interval * random.uniform(1 - SPREAD, 1 + SPREAD))  # noqa: S311

    async def _once(self) -> None:
        try:
            async with asyncio.timeout(self._limit):
                await self._turn()
        except asyncio.CancelledError as fault:
            if _told_to_stop():
                raise
            self._tell(fault)
        except Exception as fault:  # noqa: BLE001 - the loop must outlive any turn
            self._tell(fault)

    def _tell(self, fault: BaseException) -> None:
        self._signals.emit(Event.ROUND_FAILED, fault=fault, level=logging.ERROR)


def _told_to_stop() -> bool:
    """Whether this task was cancelled, and not only something that the turn waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
