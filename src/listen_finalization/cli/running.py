"""Running a command's coroutine so that a signal still lets it clean up."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end; SIGTERM and SIGHUP cancel it like SIGINT, so that what it made is removed.

    Raises `CancelledError` where it was cancelled so, `KeyboardInterrupt` for SIGINT.
    """

    async def cancellable() -> T:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            # One that is ignored stays so: `nohup` asks for it.
            if task is not None and signal.getsignal(number) is signal.SIG_DFL:
                loop.add_signal_handler(number, task.cancel)
        return await main

    return asyncio.run(cancellable())
