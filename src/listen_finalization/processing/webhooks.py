"""One delivery to one destination: signed, bounded, and answered with a code, never a text.

Built on httpcore and not on `httpx.AsyncClient`, which would bring back what must not be here:
redirects, a cookie jar, proxies of the environment, decompression, a log line with the URL, a URL
parser that may read a host in another way than `parse_url`, and no public place for the network
that judges addresses.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import TracebackType
from typing import Self

import certifi
import httpcore

from listen_finalization.domain.codes import EffectCode
from listen_finalization.errors import ListenFinalizationError
from listen_finalization.processing import signing
from listen_finalization.processing.addresses import AddressRefusedError, Endpoint, parse_url
from listen_finalization.processing.delivery import Delivery, DeliveryResult
from listen_finalization.processing.network import (
    READ_BYTES,
    GuardedNetwork,
    NameResolutionError,
    Resolver,
    SystemResolver,
    TlsError,
)

TIME_LIMIT_SECONDS = 10.0
MAX_TIME_LIMIT_SECONDS = 60.0
CONNECTIONS = 32
MAX_CONNECTIONS = 256
MAX_ANSWER_BYTES = 4_096
USER_AGENT = "listen-finalization"


class SenderConfigError(ListenFinalizationError):
    """Refused: 0 < time_limit <= 60 seconds and 1 <= connections <= 256 must both hold."""


_STATUS_CODES = {
    408: EffectCode.HTTP_408,
    425: EffectCode.HTTP_425,
    429: EffectCode.HTTP_429,
}
_STATUS_CLASSES = {
    2: EffectCode.HTTP_2XX,
    3: EffectCode.HTTP_3XX,
    4: EffectCode.HTTP_4XX,
    5: EffectCode.HTTP_5XX,
}
# The first match counts: a subclass stands before its base.
_FAULTS: tuple[tuple[type[Exception], EffectCode], ...] = (
    (AddressRefusedError, EffectCode.ADDRESS_REFUSED),
    (NameResolutionError, EffectCode.DNS_FAILED),
    (TlsError, EffectCode.TLS_FAILED),
    (ssl.SSLError, EffectCode.TLS_FAILED),
    (httpcore.ConnectError, EffectCode.CONNECT_FAILED),
    (httpcore.NetworkError, EffectCode.RESET),
    (httpcore.ProtocolError, EffectCode.PROTOCOL_ERROR),
    (TimeoutError, EffectCode.TIMEOUT),
    (OSError, EffectCode.RESET),
)
_NETWORK_FAULTS = tuple(fault for fault, _ in _FAULTS)


class WebhookSender:
    """Sends deliveries; an async context manager that closes its sockets on exit.

    `time_limit` (seconds, 10) covers lookup, connect, send, headers and body of one attempt;
    waiting for one of the `connections` (32) comes before it. Every attempt has a connection of
    its own: its address is judged each time, and nothing of one answer reaches the next. TLS is
    verified against certifi's roots unless `ssl_context` is given. `unix_time` stamps the
    signature, for the receiver's tolerance; nothing is decided by it. Raises
    `SenderConfigError`.
    """

    def __init__(
        self,
        *,
        admit_loopback: bool = False,
        time_limit: float = TIME_LIMIT_SECONDS,
        connections: int = CONNECTIONS,
        resolver: Resolver | None = None,
        ssl_context: ssl.SSLContext | None = None,
        unix_time: Callable[[], float] = time.time,
    ) -> None:
        if not (0 < time_limit <= MAX_TIME_LIMIT_SECONDS and 1 <= connections <= MAX_CONNECTIONS):
            raise SenderConfigError
        _keep_addresses_out_of_logs()
        self._admit_loopback = admit_loopback
        self._time_limit = time_limit
        self._unix_time = unix_time
        self._slots = asyncio.Semaphore(connections)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl_context or ssl.create_default_context(cafile=certifi.where()),
            max_connections=connections,
            max_keepalive_connections=0,
            network_backend=GuardedNetwork(
                admit_loopback=admit_loopback, resolver=resolver or SystemResolver()
            ),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._pool.aclose()

    async def send(self, delivery: Delivery) -> DeliveryResult:
        """Make one attempt. Trouble of the network is a result; only cancellation is raised.

        A status that was received stands, whatever its body does afterwards: a receiver that
        answered 2xx is not called again. Redirects are not followed. At most 4 KiB of the body is
        read, and none of it is kept.
        """
        async with self._slots:
            with _delivering():
                return DeliveryResult(await self._attempt(delivery))

    async def _attempt(self, delivery: Delivery) -> EffectCode:
        answered: EffectCode | None = None
        try:
            async with asyncio.timeout(self._time_limit), self._response(delivery) as response:
                answered = _code_of_status(response.status)
                await _drain(response)
        except _NETWORK_FAULTS as fault:
            return answered or _code_of_fault(fault)
        return answered

    def _response(
        self, delivery: Delivery
    ) -> contextlib.AbstractAsyncContextManager[httpcore.Response]:
        url = delivery.destination.url
        endpoint = parse_url(url, admit_loopback=self._admit_loopback)
        return self._pool.stream(
            "POST",
            httpcore.URL(
                scheme=endpoint.scheme.encode(),
                host=endpoint.host.encode(),
                port=endpoint.port,
                target=endpoint.target.encode(),
            ),
            headers=self._headers(delivery, endpoint),
            content=delivery.body,
        )

    def _headers(self, delivery: Delivery, endpoint: Endpoint) -> list[tuple[str, str]]:
        signed = signing.headers(
            delivery.destination.secret,
            delivery.body,
            delivery_id=delivery.delivery_id,
            timestamp=int(self._unix_time()),
        )
        return [
            ("Host", endpoint.authority),
            ("User-Agent", USER_AGENT),
            ("Connection", "close"),
            ("Content-Type", "application/json"),
            ("Idempotency-Key", delivery.idempotency_key),
            *signed.items(),
        ]


async def _drain(response: httpcore.Response) -> None:
    """Let the receiver finish a short answer before the connection closes, and forget it."""
    size = 0
    async for piece in response.aiter_stream():
        size += len(piece)
        if size > MAX_ANSWER_BYTES - READ_BYTES:
            return


def _code_of_status(status: int) -> EffectCode:
    by_class = _STATUS_CLASSES.get(status // 100, EffectCode.PROTOCOL_ERROR)
    return _STATUS_CODES.get(status, by_class)


def _code_of_fault(fault: Exception) -> EffectCode:
    return next(code for kind, code in _FAULTS if isinstance(fault, kind))


# httpcore logs host, headers and exception texts at DEBUG, and asyncio in its debug mode the peer.
# Their loggers serve the whole process, so they are neither disabled nor given a level: a filter
# drops what they say while a delivery is under way in the same context, and only that.
_LOGGERS = ("httpcore.connection", "httpcore.http11", "asyncio")
_under_way: ContextVar[bool] = ContextVar("delivery_under_way", default=False)


def _outside_delivery(_: logging.LogRecord) -> bool:
    return not _under_way.get()


def _keep_addresses_out_of_logs() -> None:
    """Install the filter; adding it again changes nothing."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_outside_delivery)


@contextlib.contextmanager
def _delivering() -> Iterator[None]:
    token = _under_way.set(True)
    try:
        yield
    finally:
        _under_way.reset(token)
