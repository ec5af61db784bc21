"""One process that serves the whole embedded stack, from its bound port to a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.faults import CommandError
from listen_finalization.errors import StoreBrokenError
from listen_finalization.http.serving import uvicorn_settings
from listen_finalization.stack import Stack

_LOG = logging.getLogger(__name__)

STOPPING = (signal.SIGINT, signal.SIGTERM)


def loopback(host: str) -> bool:
    """Whether only this machine can reach the host, by its spelling."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound(host: str, port: int) -> socket.socket:
    """Bind the port before anything else is made. Raises `CommandError`."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, kind, number)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind(address)
            opened.listen(socket.SOMAXCONN)
        except OSError:
            opened.close()
            raise
    except OSError as fault:
        raise CommandError(
            f"port {port} of {host} cannot be used: {fault.strerror}",
            code=ExitCode.UNAVAILABLE,
            remedy="stop what uses it, or give another with --port (0: any free one) or --host",
            word="port_unavailable",
        ) from fault
    return opened


def address_of(opened: socket.socket) -> str:
    """Return the URL that the socket is reached at."""
    host, port = opened.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(stack: Stack, opened: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until a signal; `ready` is called once requests are answered.

    Raises `StoreBrokenError` when the process must end for its store's sake (contract 16).
    """
    waiting = [ready]

    async def tick() -> None:
        """Run first when the port answers, then every second."""
        while waiting:
            waiting.pop()()
        server.should_exit = server.should_exit or stack.store.broken

    config = uvicorn.Config(stack.app, callback_notify=tick, timeout_notify=0, **uvicorn_settings())
    server = uvicorn.Server(config)
    # uvicorn raises a captured signal again, which would end the process before the stack drained.
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
    with _stopped_by_signals(server):
        async with stack:
            await server.serve(sockets=[opened])
            # Asked before the store closes: the last one to close a WAL takes its file away.
            broken = stack.store.broken
    if broken:
        raise StoreBrokenError


@contextlib.contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Let the first signal stop the server and a second one end the process at once.

    What a forced end leaves is what a crash leaves: leases that the next process takes over.
    """
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        if server.should_exit:
            _LOG.warning("forced to end: open runs are taken over at the next start")
            os._exit(128 + number)
        server.should_exit = True
        _LOG.warning("stopping: requests end, then runs; a second signal forces it")

    for number in STOPPING:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number in STOPPING:
            loop.remove_signal_handler(number)
