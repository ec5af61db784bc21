"""A real Cloud Tasks server for tests and development: gRPC for the real client, HTTP deliveries.

    async with CloudTasksServer(queues=[QUEUE]) as server:
        client = await open_client(server.address)

It keeps what the reference says of names, schedules, attempts, back-off, rate and deadlines, and
leaves out production's system throttling. Accounts and permissions do not exist here.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

import grpc  # type: ignore[import-untyped]
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from listen_finalization.auth.keyfile import open_key
from listen_finalization.domain.job import Instant
from listen_finalization.errors import ListenFinalizationError
from listen_finalization.outbox.clock import AnchoredClock, boot_micros
from listen_finalization.testing.cloud_tasks import names
from listen_finalization.testing.cloud_tasks.delivery import Sender
from listen_finalization.testing.cloud_tasks.engine import Engine
from listen_finalization.testing.cloud_tasks.faults import Faults
from listen_finalization.testing.cloud_tasks.identity import TaskIdentity
from listen_finalization.testing.cloud_tasks.journal import Journal
from listen_finalization.testing.cloud_tasks.pump import Pump
from listen_finalization.testing.cloud_tasks.service import TasksService
from listen_finalization.testing.cloud_tasks.values import Queue
from listen_finalization.testing.cloud_tasks.web import WebServer

LOOPBACK = "127.0.0.1"


class PortUnavailableError(ListenFinalizationError):
    """A port of the Cloud Tasks server cannot be used: another process has it."""


class CloudTasksServer:
    """An async context manager: entering it opens the ports, leaving it cuts what is under way.

    `faults` may be set at any time. Where a test passes a `clock` of its own, schedules, back-off,
    rates and deadlines go by it, and `wake` must be called after moving it. Tokens are dated by
    `token_now`, wall time in epoch seconds.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        keys_port: int = 0,
        queues: Iterable[str] = (),
        state: Path | None = None,
        clock: Callable[[], Instant] | None = None,
        token_now: Callable[[], float] = time.time,
        key: RSAPrivateKey | None = None,
    ) -> None:
        """`queues` are full names, created where they do not exist; port 0 is any free one.

        With a `state` file, tasks, queues, names and (in a file beside it) the key survive a
        restart. Raises `CallRefusedError` for a malformed name; entering, for one that is held.
        """
        self.faults = Faults()
        self._port = port
        self._keys_port = keys_port
        self._queues = [names.queue(name) for name in queues]
        self._state = state
        self._clock = clock or AnchoredClock(time.time_ns() // 1_000, boot_micros())
        self._token_now = token_now
        self._key = key
        self._journal: Journal | None = None
        self._pump: Pump | None = None
        self._pumping: asyncio.Task[None] | None = None
        self._closing = AsyncExitStack()

    @property
    def address(self) -> str:
        """`host:port` of the gRPC service, which has no TLS."""
        return f"{LOOPBACK}:{self._port}"

    @property
    def control_url(self) -> str:
        """Where the fault switches are reached over HTTP: see `web`."""
        return f"http://{LOOPBACK}:{self._keys_port}"

    @property
    def keys_url(self) -> str:
        """Where the keys of the delivered tokens are published."""
        return f"{self.control_url}/certs"

    def wake(self) -> None:
        """Look at the clock again, after a test has moved it."""
        if self._pump is not None:
            self._pump.wake()

    def rotate_key(self) -> None:
        """Sign with a new key from now on; older ones stay published."""
        self.identity.rotate()

    async def served(self) -> None:
        """Wait until the server fails; raises the fault. Cancelling it leaves the server up."""
        if self._pumping is not None:
            await asyncio.shield(self._pumping)

    async def __aenter__(self) -> Self:
        """Open files and ports. Raises `PortUnavailableError`, `StateFileError`, `KeyFileError`."""
        try:
            await self._start()
        except BaseException:
            await self._closing.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._closing.aclose()

    async def _start(self) -> None:
        engine, flush = self._opened_engine()
        key = self._key or (open_key(_key_file(self._state)) if self._state else None)
        self.identity = TaskIdentity(key, now=self._token_now)
        await self._start_web()
        sender = Sender(self.identity)
        self._closing.push_async_callback(sender.close)
        self._pump = pump = Pump(engine, sender, self.faults, self._clock, flush=flush)
        self._pumping = asyncio.create_task(pump.run(), name="cloud-tasks-pump")
        self._closing.push_async_callback(_ended, self._pumping)

        def changed() -> None:
            pump.wake()  # first, so that a fault of the state file ends the pump as well
            flush()

        service = TasksService(engine, self.faults, self._clock, changed=changed, begin=pump.begin)
        await self._start_grpc(service)

    def _opened_engine(self) -> tuple[Engine, Callable[[], None]]:
        self._journal = journal = Journal(self._state) if self._state is not None else None
        engine = Engine(journal.record if journal is not None else None)
        now = self._clock()
        if journal is not None:
            self._closing.callback(journal.close)
            for name, kept in journal.kept():
                engine.restore(name, kept, now)
        for name in self._queues:
            if not engine.has_queue(name):
                engine.create_queue(Queue(name), now)
        return engine, journal.flush if journal is not None else lambda: None

    async def _start_web(self) -> None:
        opened = _bound(self._keys_port)
        self._keys_port = opened.getsockname()[1]
        web = WebServer(self.identity, self.faults)
        await web.start(opened)
        self._closing.callback(web.stop)

    async def _start_grpc(self, service: TasksService) -> None:
        # Linux would let two servers share a port, and a test would talk to the other one.
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        server.add_generic_rpc_handlers((service.handlers(),))
        try:
            self._port = server.add_insecure_port(self.address)
        except RuntimeError as error:
            raise PortUnavailableError(f"port {self._port} is in use") from error
        await server.start()
        self._closing.push_async_callback(server.stop, 0)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


def _bound(port: int) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((LOOPBACK, port))
    except OSError as error:
        opened.close()
        raise PortUnavailableError(f"port {port} is in use") from error
    return opened


def _key_file(state: Path) -> Path:
    return state.with_name(f"{state.name}.key.pem")
