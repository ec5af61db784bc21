"""What only a real server shows: unread bodies, broken requests, and what uvicorn prints."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from listen_finalization.admission import Admission
from listen_finalization.auth.issuer import LocalIssuer
from listen_finalization.auth.policy import TokenPolicy
from listen_finalization.auth.verifier import TokenVerifier
from listen_finalization.domain.job import Job
from listen_finalization.domain.policy import Policy
from listen_finalization.http.app import CustomerServices, Services, build_app
from listen_finalization.http.serving import hush, uvicorn_settings
from listen_finalization.observe.signals import Signals
from listen_finalization.outbox.sqlite import SqliteStore

CANARY = "canary-91c2"


class Taken:
    async def hand_over(self, job: Job, *, delay: int = 0) -> bool:
        return True


async def broken(request: Request) -> Response:
    raise LookupError(CANARY + request.url.path)


async def endless(request: Request) -> Response:
    await asyncio.sleep(600)
    return Response()


def services(store: SqliteStore, issuer: LocalIssuer) -> Services:
    signals = Signals()
    return Services(
        signals=signals,
        customers=CustomerServices(
            verifier=TokenVerifier(TokenPolicy.local_users("served"), issuer.key_source()),
            admission=Admission(store.outbox, Taken(), signals),
            outbox=store.outbox,
            max_attempts=5,
            durable=True,
            embedded=store.conversations,
        ),
    )


@asynccontextmanager
async def served(directory: Path) -> AsyncIterator[int]:
    store = SqliteStore(directory / "listen.db", Policy(handover=0))
    app = build_app(services(store, LocalIssuer.open(directory, "users")))
    app.router.routes += [Route("/broken", broken), Route("/endless", endless)]
    hush()
    settings = {**uvicorn_settings(), "timeout_graceful_shutdown": 1}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, **settings))
        serving = asyncio.ensure_future(server.serve([listener]))
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        yield int(listener.getsockname()[1])
        server.should_exit = True
        await serving
    store.close()


async def ask(port: int, head: str, body: bytes = b"") -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
    answer = (await asyncio.wait_for(reader.read(), 10)).decode()
    writer.close()
    return int(answer.split()[1]), answer


async def test_a_stranger_is_refused_before_the_body(tmp_path: Path) -> None:
    """The announced 8 MiB never come, and the answer does not wait for them."""
    async with served(tmp_path) as port:
        head = (
            "PUT /v1/conversations/c1/segments HTTP/1.1\nHost: x\nConnection: close\n"
            "Content-Type: application/json\nContent-Length: 8388608"
        )
        status, answer = await ask(port, head, b"[" * 1_000)
        assert status == 401
        assert "application/problem+json" in answer
        assert "server: uvicorn" not in answer.lower()


async def test_an_exception_prints_its_class_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with served(tmp_path) as port:
        head = f"GET /broken?token={CANARY} HTTP/1.1\nHost: x\nConnection: close"
        status, answer = await ask(port, head)
        assert status == 500
        assert json.loads(answer.partition("\r\n\r\n")[2])["code"] == "internal_error"
    lines = [caplog.handler.format(record) for record in caplog.records]
    assert not [line for line in lines if CANARY in line or "Traceback" in line]
    assert sum("request_fault" in line for line in lines) == 1
    assert CANARY not in answer


async def test_a_request_that_outlives_the_drain_prints_no_trace(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with served(tmp_path) as port:
        head = "GET /endless HTTP/1.1\nHost: x\nConnection: close"
        asking = asyncio.ensure_future(ask(port, head))
        await asyncio.sleep(0.2)
    await asyncio.wait([asking], timeout=5)
    asking.cancel()
    lines = [caplog.handler.format(record) for record in caplog.records]
    assert not [line for line in lines if "Traceback" in line]


@pytest.mark.parametrize(
    "head", [f"{CANARY} / HTTP/9", f"GET /{CANARY}\x01 HTTP/1.1\nHost: x", f"{CANARY}"]
)
async def test_what_is_no_http_is_not_echoed(
    tmp_path: Path, head: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with served(tmp_path) as port:
        status, answer = await ask(port, head)
        assert status == 400
        assert CANARY not in answer
    assert CANARY not in "".join(caplog.handler.format(record) for record in caplog.records)
