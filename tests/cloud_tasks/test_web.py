"""The small HTTP server takes nothing but whole, small requests, and survives all others."""

from __future__ import annotations

import asyncio
import logging

import httpx
import pytest

from listen_finalization.testing.cloud_tasks import Fault, FaultKind, Faults, web
from listen_finalization.testing.cloud_tasks.paging import page
from listen_finalization.testing.cloud_tasks.values import Queue

from .at_hand import Bench, bench


async def sent(at: Bench, data: bytes, *, ends: bool = True) -> bytes:
    """Send raw bytes and return all that comes back."""
    host, port = at.server.control_url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    if ends:
        writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET /certs",
        b"GET\r\n\r\n",
        b"PUT /faults/twice HTTP/1.1\r\nContent-Length: x\r\n\r\n{}",
        b"PUT /faults/twice HTTP/1.1\r\nContent-Length: -1\r\n\r\n{}",
        b"PUT /faults/twice HTTP/1.1\r\nContent-Length: 9\r\n\r\n{}",
        b"PUT /faults/twice HTTP/1.1\r\nContent-Length: 4097\r\n\r\n" + b" " * 4_095 + b"{}",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET * HTTP/1.1\r\n\r\n",
    ],
)
async def test_what_is_no_request_gets_no_answer_and_changes_nothing(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with bench() as at:
        assert await sent(at, data) == b""
        assert at.server.faults.active() == ()
        async with httpx.AsyncClient() as http:
            assert (await http.get(at.server.keys_url)).status_code == 200
    assert caplog.records == []


async def test_a_request_that_does_not_arrive_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "PATIENCE", 0.05)
    async with bench() as at:
        assert await sent(at, b"GET /certs HT", ends=False) == b""


async def test_an_open_connection_does_not_keep_the_server_from_ending() -> None:
    async with bench() as at:
        host, port = at.server.control_url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
    writer.close()


def test_a_switch_that_is_set_again_counts_its_share_anew() -> None:
    faults = Faults()
    for _ in range(3):
        faults.set(Fault(FaultKind.REFUSE, share=0.5))
        assert faults.hit(FaultKind.REFUSE) is None


def test_no_page_is_longer_than_the_most() -> None:
    class Request:
        page_size = 5
        page_token = ""

    queues = [Queue(f"q{number}") for number in range(4)]
    shown, token = page(queues, Request(), 3)
    assert (shown, bool(token)) == (queues[:3], True)
    assert page(queues, Request(), 4) == (queues, "")
