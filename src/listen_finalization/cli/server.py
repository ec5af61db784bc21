"""One process that serves a stack, from its first answer to a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import uvicorn
from fastapi import FastAPI

from listen_finalization.errors import StoreBrokenError
from listen_finalization.http.serving import uvicorn_settings

_LOG = logging.getLogger(__name__)

STOPPING = (signal.SIGINT, signal.SIGTERM)


class Serving(Protocol):
    """A stack of any mode: an application, and what runs behind it while entered."""

    @property
    def app(self) -> FastAPI: ...

    @property
    def broken(self) -> bool:
        """Whether this process must end because its store cannot be trusted."""
        ...

    async def drain(self) -> None:
        """Take no new run, and end those under way within the grace time. May be called again."""
        ...

    async def __aenter__(self) -> Any: ...

    async def __aexit__(self, *_: object) -> None: ...


async def serve_stack(stack: Serving, opened: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until a signal; `ready` is called once requests are answered.

    At the signal the runs are drained beside the requests: a delivery is a request that waits for
    its run, so that one after the other would cost both times. Raises `StoreBrokenError` when the
    process must end for its store's sake (contract 16).
    """
    waiting = [ready]

    async def tick() -> None:
        """Run first when the port answers, then every second."""
        while waiting:
            waiting.pop()()
        server.should_exit = server.should_exit or stack.broken

    config = uvicorn.Config(stack.app, callback_notify=tick, timeout_notify=0, **uvicorn_settings())
    server = uvicorn.Server(config)
    # uvicorn raises a captured signal again, which would end the process before the stack drained.
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
    draining: list[asyncio.Task[None]] = []
    with _stopped_by_signals(server, lambda: draining.append(asyncio.ensure_future(stack.drain()))):
        async with stack:
            await server.serve(sockets=[opened])
            # Asked before the store closes: the last one to close a WAL takes its file away.
            broken = stack.broken
            await asyncio.gather(*draining)
    if broken:
        raise StoreBrokenError


@contextlib.contextmanager
def _stopped_by_signals(server: uvicorn.Server, drain: Callable[[], None]) -> Iterator[None]:
    """Let the first signal stop the server and a second one end the process at once.

    What a forced end leaves is what a crash leaves: leases that the next process takes over.
    """
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        if server.should_exit:
            _LOG.warning("forced to end: open runs are taken over at the next start")
            os._exit(128 + number)
        server.should_exit = True
        drain()
        _LOG.warning("stopping: requests end, then runs; a second signal forces it")

    for number in STOPPING:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number in STOPPING:
            loop.remove_signal_handler(number)
