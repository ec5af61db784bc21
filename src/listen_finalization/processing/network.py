"""The network as deliveries see it: judged addresses only, judged at the moment of connecting.

It connects to the very address that it judged, so that a DNS answer which changes between check
and use changes nothing. The TLS server name and the `Host` header stay the name that was given.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import httpcore

from listen_finalization.errors import ListenFinalizationError
from listen_finalization.processing.addresses import (
    LOCALHOST,
    judge,
    parse_literal,
)

MAX_ADDRESSES = 4
ATTEMPT_SECONDS = 2.0
"""How long one address may take to connect before the next is tried; the last one may take all."""
RESOLVER_THREADS = 64
READ_BYTES = 1_024
"""The most that is read from a receiver at once, so that bounds on its answer are exact."""
SocketOption = (
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
)


class NameResolutionError(ListenFinalizationError):
    """The name of the destination has no address at present."""


class TlsError(ListenFinalizationError):
    """The destination did not prove its name, or does not speak TLS."""


class Resolver(Protocol):
    """Asks for the addresses of a name."""

    async def __call__(self, host: str, port: int, /) -> Sequence[str]:
        """Return all addresses in order of preference; raise `NameResolutionError` for none."""
        ...


class SystemResolver:
    """Asks the operating system, each lookup in a thread of its own that no exit waits for.

    A lookup cannot be cancelled; it keeps its thread until the system gives up. At most
    `RESOLVER_THREADS` are under way: one more is answered with `NameResolutionError` at once, so
    that names which never resolve hold up neither the process nor the other lookups.
    """

    def __init__(self) -> None:
        self._under_way = threading.Semaphore(RESOLVER_THREADS)

    async def __call__(self, host: str, port: int, /) -> Sequence[str]:
        if not self._under_way.acquire(blocking=False):
            raise NameResolutionError
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[tuple[str, ...]] = loop.create_future()

        def ask() -> None:
            found: tuple[str, ...] = ()
            try:
                found = _look_up(host, port)
            finally:
                self._under_way.release()
                tell(found)

        def tell(found: tuple[str, ...]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits
                loop.call_soon_threadsafe(_tell, answer, found)

        try:
            threading.Thread(target=ask, name="resolver", daemon=True).start()
        except RuntimeError as error:  # the system gives no more threads
            self._under_way.release()
            raise NameResolutionError from error
        answers = await answer
        if not answers:
            raise NameResolutionError
        return answers


def _tell(answer: asyncio.Future[tuple[str, ...]], found: tuple[str, ...]) -> None:
    if not answer.done():
        answer.set_result(found)


def _look_up(host: str, port: int) -> tuple[str, ...]:
    """Return the addresses of a name, without repeats; none when the system knows none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


class GuardedNetwork(httpcore.AsyncNetworkBackend):
    """The network as deliveries see it: connects to judged addresses only.

    One refused address among the answers refuses the name. `connector` opens the socket, and is
    given an address, never a name. Raises `AddressRefusedError`, `NameResolutionError`,
    `httpcore.ConnectError`; the streams also `TlsError`.
    """

    def __init__(
        self,
        *,
        admit_loopback: bool,
        resolver: Resolver,
        connector: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._admit_loopback = admit_loopback
        self._resolver = resolver
        self._connector = connector or httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 -- the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        async def connect(address: str) -> httpcore.AsyncNetworkStream:
            return GuardedStream(
                await self._connector.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            )

        *others, last = await self._judged(host, port)
        for address in others:
            with contextlib.suppress(httpcore.ConnectError, TimeoutError):
                async with asyncio.timeout(ATTEMPT_SECONDS):
                    return await connect(address)
        return await connect(last)

    async def _judged(self, host: str, port: int) -> list[str]:
        """Resolve once and judge every answer; `localhost` is what RFC 6761 says it is."""
        answers: Sequence[str]
        if host == LOCALHOST:
            answers = ("127.0.0.1", "::1")
        elif parse_literal(host) is not None:
            answers = (host,)
        else:
            answers = await self._resolver(host, port)
        judged = [str(judge(one, admit_loopback=self._admit_loopback)) for one in answers]
        if not judged:
            raise NameResolutionError
        return judged[:MAX_ADDRESSES]


class GuardedStream(httpcore.AsyncNetworkStream):
    """A connection that is read in small pieces and tells TLS faults from others."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._answered = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """Read at most `READ_BYTES`; an end before the first byte is a `ReadError`."""
        piece = await self._stream.read(min(max_bytes, READ_BYTES), timeout)
        if not piece and not self._answered:
            raise httpcore.ReadError
        self._answered = True
        return piece

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        try:
            stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except (httpcore.ConnectError, ssl.SSLError) as error:
            raise TlsError from error
        return GuardedStream(stream)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
