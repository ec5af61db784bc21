"""Deliveries over TLS: the name that was given is the name that must be proven."""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path

import pytest

from listen_finalization.domain.codes import EffectCode
from listen_finalization.processing.delivery import Verdict

from .receivers import (
    NAME,
    delivery,
    receiving,
    sender,
    server_tls,
    status,
    write_certificate,
)


async def test_tls_server_name_and_host_stay_those_of_the_url(tmp_path: Path) -> None:
    certificate = write_certificate(tmp_path)
    tls, asked = server_tls(certificate), list[str | None]()
    tls.sni_callback = lambda _, name, __: asked.append(name)
    trusting = ssl.create_default_context(cafile=str(certificate))
    async with (
        receiving(status(200), tls=tls) as receiver,
        sender(answers=["127.0.0.1"], tls=trusting) as webhooks,
    ):
        result = await webhooks.send(delivery(f"https://{NAME}:{receiver.port}/"))

    assert result.code == EffectCode.HTTP_2XX
    assert asked == [NAME]
    assert receiver.headers()["host"] == f"{NAME}:{receiver.port}"


@pytest.mark.parametrize(
    ("host", "trusted"), [(NAME, False), ("other.example", True), ("127.0.0.1", True)]
)
async def test_a_receiver_that_cannot_prove_its_name_sees_nothing(
    tmp_path: Path, host: str, trusted: bool
) -> None:
    certificate = write_certificate(tmp_path)
    tls = ssl.create_default_context(cafile=str(certificate) if trusted else None)
    async with (
        receiving(status(200), tls=server_tls(certificate)) as receiver,
        sender(answers=["127.0.0.1"], tls=tls) as webhooks,
    ):
        result = await webhooks.send(delivery(f"https://{host}:{receiver.port}/"))

    assert (result.code, result.verdict) == (EffectCode.TLS_FAILED, Verdict.RETRY)
    assert receiver.requests == []


async def test_a_receiver_that_speaks_no_tls_is_a_tls_failure() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, sender() as webhooks:
        result = await webhooks.send(delivery(f"https://127.0.0.1:{port}/"))

    assert result.code == EffectCode.TLS_FAILED


async def test_a_record_that_breaks_after_the_handshake_is_a_tls_failure(tmp_path: Path) -> None:
    async def broken_record(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        os.write(writer.get_extra_info("socket").fileno(), bytes(64))
        await reader.read()

    certificate = write_certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=str(certificate))
    async with (
        receiving(broken_record, tls=server_tls(certificate)) as receiver,
        sender(answers=["127.0.0.1"], tls=trusting) as webhooks,
    ):
        result = await webhooks.send(delivery(f"https://{NAME}:{receiver.port}/"))

    assert result.code == EffectCode.TLS_FAILED
