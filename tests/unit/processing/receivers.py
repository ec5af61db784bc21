"""HTTP receivers of raw bytes on loopback, their misbehaviour, and a sender to try them with."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from listen_finalization.domain.effect_key import delivery_id, idempotency_key
from listen_finalization.processing.delivery import Delivery, Destination
from listen_finalization.processing.network import NameResolutionError
from listen_finalization.processing.webhooks import WebhookSender

SECRET = b"canary-secret-0123456789-abc"
BODY = b'{"title":"canary-body"}'
NOW = 1_760_000_000
JOB = "0191b2c4-7f00-8abc-9def-0123456789ab"
SHORT = 0.2
NAME = "canary-host.example"

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Receiver:
    """Notes each request whole, then lets `answer` do as it likes."""

    def __init__(self, answer: Handler) -> None:
        self.answer = answer
        self.requests: list[bytes] = []
        self.called = asyncio.Event()
        self.gone = asyncio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/canary-path?token=canary-token"

    def headers(self, index: int = -1) -> httpx.Headers:
        head = self.requests[index].partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]
        pairs = (line.partition(b": ") for line in head)
        return httpx.Headers([(name, value) for name, _, value in pairs])

    def body(self, index: int = -1) -> bytes:
        return self.requests[index].partition(b"\r\n\r\n")[2]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            )
            self.requests.append(head + await reader.readexactly(length))
            self.called.set()
            await self.answer(reader, writer)
            await writer.drain()
        writer.close()
        self.gone.set()


@contextlib.asynccontextmanager
async def receiving(
    answer: Handler, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Receiver]:
    receiver = Receiver(answer)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver


def says(raw: bytes) -> Handler:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)

    return answer


def status(code: int, *headers: str, body: bytes = b"") -> Handler:
    lines = [f"HTTP/1.1 {code} canary-reason", f"Content-Length: {len(body)}", *headers, "", ""]
    return says("\r\n".join(lines).encode() + body)


def in_turn(*handlers: Handler) -> Handler:
    waiting = list(handlers)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await waiting.pop(0)(reader, writer)

    return answer


async def hang(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


async def hang_in_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    await hang(reader, writer)


async def endless_body(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"400\r\n" + b"canary-answer".ljust(0x400) + b"\r\n")
        await writer.drain()


async def endless_interim(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </canary>\r\n\r\n")
        await writer.drain()


async def reset(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def close(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
    """Say nothing; `serve` closes the connection."""


GZIP_BOMB = status(200, "Content-Encoding: gzip", body=gzip.compress(bytes(10_000_000)))
HUGE_HEADERS = says(b"HTTP/1.1 200 OK\r\nX-Canary: " + b"x" * 300_000 + b"\r\n\r\n")


def sender(
    *,
    time_limit: float = 10.0,
    connections: int = 4,
    admit_loopback: bool = True,
    answers: Sequence[str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> WebhookSender:
    async def resolver(host: str, port: int, /) -> Sequence[str]:
        if answers is None:
            raise NameResolutionError
        return answers

    return WebhookSender(
        admit_loopback=admit_loopback,
        time_limit=time_limit,
        connections=connections,
        resolver=resolver,
        ssl_context=tls or ssl.create_default_context(),
        unix_time=lambda: NOW,
    )


def delivery(url: str, *, body: bytes = BODY) -> Delivery:
    destination = Destination(id="crm", url=url, secret=SECRET)
    return Delivery(destination, idempotency_key(JOB, "crm"), delivery_id(JOB, "crm"), body)


def write_certificate(folder: Path) -> Path:
    """Write a self-signed certificate for `NAME`, with its key; return the PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "receiver.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
