"""Where a delivery may go: public https receivers, and never into a private network (SSRF).

Two gates. `parse_url` judges the spelling, without I/O. `GuardedNetwork` judges the addresses at
the moment of connecting, and connects to the very address that it judged, so that a DNS answer
which changes between check and use changes nothing. The TLS server name and the `Host` header stay
the name that was given.

`admit_loopback` (embedded mode only) admits exactly 127.0.0.0/8 and ::1, and nothing else that is
private.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
import ssl
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpcore

from listen_finalization.errors import ListenFinalizationError

MAX_URL = 2_048
MAX_ADDRESSES = 4
ATTEMPT_SECONDS = 2.0
"""How long one address may take to connect before the next is tried; the last one may take all."""
RESOLVER_THREADS = 8
READ_BYTES = 1_024
"""The most that is read from a receiver at once, so that bounds on its answer are exact."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
SocketOption = (
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
)

_PORTS = {"https": 443, "http": 80}
_URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>\[[0-9a-f.]*:[0-9a-f:.]{1,44}\]|[a-z0-9._-]{1,253})"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<target>(?:[/?](?:[a-z0-9._~!$&'()*+,;=:@/?-]|%[0-9a-f]{2})*)?)",
    re.IGNORECASE | re.ASCII,
)
_NAME = re.compile(
    r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])"
)
_LOCALHOST = "localhost"

# IANA special-purpose registries (RFC 6890), where `ipaddress.is_global` of Python 3.11 is silent:
# protocol assignments, 6to4 relays, and the host service of Azure, which is public by number only.
_REFUSED_V4 = tuple(
    ipaddress.IPv4Network(network)
    for network in ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32")
)
# Within 2000::/3: protocol assignments with Teredo, documentation, 6to4.
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
_REFUSED_V6 = tuple(
    ipaddress.IPv6Network(network)
    for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# Spelled out, because later versions of Python count ::ffff:127.0.0.1 as loopback too.
_LOOPBACK_V4 = ipaddress.IPv4Network("127.0.0.0/8")
_LOOPBACK_V6 = ipaddress.IPv6Address("::1")


class AddressRefusedError(ListenFinalizationError):
    """The address of the destination is not one that deliveries may go to."""


class NameResolutionError(ListenFinalizationError):
    """The name of the destination has no address at present."""


class TlsError(ListenFinalizationError):
    """The destination did not prove its name, or does not speak TLS."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A URL that passed `parse_url`, in parts; none of them is in the repr.

    `host` is lower case and without brackets; `target` is path and query and starts with a slash.
    """

    scheme: str
    host: str = field(repr=False)
    port: int = field(repr=False)
    target: str = field(repr=False)

    @property
    def authority(self) -> str:
        """The `Host` header: brackets around IPv6, the port unless it is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


class Resolver(Protocol):
    """Asks for the addresses of a name."""

    async def __call__(self, host: str, port: int, /) -> Sequence[str]:
        """Return all addresses in order of preference; raise `NameResolutionError` for none."""
        ...


class SystemResolver:
    """Asks the operating system, in threads of its own.

    A lookup cannot be cancelled; it keeps its thread until the system gives up. With threads of
    its own it delays other lookups at most, not the process's other blocking work. Nothing is
    logged, in asyncio's debug mode either.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="resolver")

    async def __call__(self, host: str, port: int, /) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        answers = await loop.run_in_executor(self._threads, _look_up, host, port)
        if not answers:
            raise NameResolutionError
        return answers


def parse_url(url: str, *, admit_loopback: bool = False) -> Endpoint:
    """Return the parts of a URL that a delivery may be sent to, judged by its spelling alone.

    https; http only to a receiver spelled as loopback (`localhost`, 127.0.0.0/8, `[::1]`) where
    that is admitted. At most 2048 ASCII characters, any port from 1, no user name, no fragment. A
    host is an admitted address in its one canonical spelling, or a DNS name with a dot, without a
    trailing one, whose last label starts with a letter; an international name is given as `xn--`.
    Raises `AddressRefusedError` and nothing else, for any text.
    """
    match = _URL.fullmatch(url) if len(url) <= MAX_URL else None
    if match is None:
        raise AddressRefusedError
    scheme, host = match["scheme"].lower(), match["host"].lower().strip("[]")
    port = int(match["port"] or _PORTS[scheme])
    literal = _literal(host)
    loopback = host == _LOCALHOST or _is_loopback(literal)
    named = _NAME.fullmatch(host) is not None
    admitted = admit_loopback if loopback else named or _is_public(literal)
    if not admitted or (scheme == "http" and not loopback) or not 0 < port < 65_536:
        raise AddressRefusedError
    target = match["target"]
    return Endpoint(scheme, host, port, target if target.startswith("/") else "/" + target)


def judge(answer: str, *, admit_loopback: bool) -> Address:
    """Return the address that `answer` spells, if a connection to it may be opened.

    Admitted is global unicast: not private, loopback, link-local, shared (100.64.0.0/10),
    multicast, reserved, documentation or unspecified; of IPv6 only 2000::/3, without the forms
    that carry an IPv4 address (mapped, compatible, 6to4, Teredo), and NAT64 by its well-known
    prefix where the address inside is admitted. Raises `AddressRefusedError`.
    """
    address = _literal(answer)
    admitted = admit_loopback if _is_loopback(address) else _is_public(address)
    if address is None or not admitted:
        raise AddressRefusedError
    return address


def _literal(text: str) -> Address | None:
    """Read an address in its canonical spelling: no short, octal, hex or decimal form, no zone."""
    if "%" in text:
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_loopback(address: Address | None) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in _LOOPBACK_V4
    return address == _LOOPBACK_V6


def _is_public(address: Address | None) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return _is_public(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
        return address in _UNICAST_V6 and not any(address in network for network in _REFUSED_V6)
    if address is None or address.is_multicast:
        return False
    return address.is_global and not any(address in network for network in _REFUSED_V4)


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
        if host == _LOCALHOST:
            answers = ("127.0.0.1", "::1")
        elif _literal(host) is not None:
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
