"""The closed list of problems, and the paths and methods that nobody serves."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from desk import CANARY, desk, logged, says
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from listen_finalization.domain.codes import RefusalCode
from listen_finalization.http.body import (
    BodyTimeoutError,
    NotStrictJsonError,
    read_body,
    strict_json,
)
from listen_finalization.http.customer import REFUSALS
from listen_finalization.http.problems import PROBLEMS, Kind, document
from listen_finalization.http.serving import ClassOnly, hush, uvicorn_settings


def test_every_kind_is_described_and_the_list_is_closed() -> None:
    assert set(PROBLEMS) == set(Kind)
    for kind, told in PROBLEMS.items():
        assert 400 <= told.status < 600
        assert told.title and told.when
        assert (told.retry_after is not None) is (told.status in (429, 503))
        assert document(kind)["status"] == told.status


def test_every_refusal_of_an_admission_has_an_answer() -> None:
    ours = {code for code in RefusalCode if code.startswith("conversation_")}
    others = {
        RefusalCode.CONVERSATION_SETTLED,  # answered from the conversation
        RefusalCode.CONVERSATION_CHANGED,  # of a replay
        RefusalCode.CONVERSATION_OURS,  # of a fence
    }
    assert set(REFUSALS) == (ours - others) | {RefusalCode.SCHEMA_NEWER}


async def test_unknown_paths_and_methods_are_problems(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        says(await client.get(f"/{CANARY}"), 404, "not-found")
        says(await client.get("/"), 404, "not-found")
        says(await client.get("/docs"), 404, "not-found")
        says(await client.get("/redoc"), 404, "not-found")
        wrong = await client.patch("/v1/conversations/c1/finalize")
        says(wrong, 405, "method-not-allowed")
        assert wrong.headers["allow"] == "POST"


async def test_a_type_is_explained_at_its_own_address(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client(None) as client:
        problem = says(await client.post("/v1/conversations/x/finalize"), 401, "unauthenticated")
        explained = await client.get(problem["type"])
        assert explained.status_code == 200
        assert explained.json() == problem
        says(await client.get("/problems/nothing"), 404, "not-found")


async def test_the_internal_route_is_in_no_document(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client(None) as client:
        told = (await client.get("/openapi.json")).json()
        assert set(told["paths"]) == {
            "/v1/conversations/{conversation_id}/finalize",
            "/v1/conversations/{conversation_id}/finalization",
            "/v1/conversations/{conversation_id}/segments",
            "/v1/conversations/{conversation_id}",
        }
        assert "conversation-finalization-jobs" not in json.dumps(told)


async def test_without_the_embedded_mode_its_routes_are_not_there(tmp_path: Path) -> None:
    async with desk(tmp_path, embedded=None) as made, made.client() as client:
        told = (await client.get("/openapi.json")).json()
        assert len(told["paths"]) == 2
        assert "SegmentsRequest" not in told["components"]["schemas"]
        says(await client.get("/v1/conversations/c1"), 404, "not-found")


async def raising(request: Request) -> Response:
    raise HTTPException(int(request.path_params["status"]), detail=CANARY)


@pytest.mark.parametrize(
    ("status", "answered", "kind"),
    [
        (418, 400, "bad-request"),
        (403, 403, "forbidden"),
        (413, 413, "body-too-large"),
        (502, 500, "internal-error"),
    ],
)
async def test_what_the_framework_refuses_is_a_problem_too(
    tmp_path: Path, status: int, answered: int, kind: str
) -> None:
    routes = [Route("/raise/{status}", raising)]
    async with desk(tmp_path, routes=routes) as made, made.client() as client:
        says(await client.get(f"/raise/{status}"), answered, kind)


async def half(request: Request) -> Response:
    class Half(Response):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            raise RuntimeError(CANARY)

    return Half()


async def test_an_exception_after_the_start_of_an_answer_is_swallowed_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with desk(tmp_path, routes=[Route("/half", half)]) as made, made.client() as client:
        with pytest.raises(AssertionError):  # the transport waits for the rest of the answer
            await client.get("/half")
    assert [json.loads(r.message)["fault"] for r in caplog.records] == ["builtins.RuntimeError"]
    assert CANARY not in logged(caplog.records)


async def test_a_websocket_that_fails_is_closed_with_1011(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(socket: WebSocket) -> None:
        await socket.accept()
        raise RuntimeError(CANARY)

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    scope = {"type": "websocket", "path": "/ws", "raw_path": b"/ws", "headers": []}
    scope |= {"query_string": b"", "subprotocols": [], "scheme": "ws", "root_path": ""}
    async with desk(tmp_path, routes=[WebSocketRoute("/ws", broken)]) as made:
        await made.app(scope, receive, send)
    assert [message["type"] for message in sent] == ["websocket.accept", "websocket.close"]
    assert sent[-1]["code"] == 1011
    assert CANARY not in logged(caplog.records)


async def test_a_client_that_left_is_no_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async with desk(tmp_path) as made:
        await made.spoken()
        token = made.token()["Authorization"].encode()
        headers = [(b"authorization", token), (b"content-length", b"10")]
        path = "/v1/conversations/c1/finalize"
        scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode()}
        scope |= {"headers": headers, "query_string": b"", "scheme": "http", "root_path": ""}
        await made.app(scope, receive, send)
        assert not (await made.outbox.list()).jobs
    assert not sent
    assert "request_fault" not in logged(caplog.records)


async def enter(app: FastAPI) -> None:
    async with app.router.lifespan_context(app):
        pass


def request_of(pieces: list[bytes], wait: float = 0.0) -> Request:
    waiting = list(pieces)

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(wait)
        body = waiting.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(waiting)}

    return Request({"type": "http", "headers": [], "method": "POST"}, receive)


async def test_a_body_that_trickles_is_given_up() -> None:
    with pytest.raises(BodyTimeoutError):
        await read_body(request_of([b"x"] * 50, wait=0.02), limit=100, patience=0.1)
    assert await read_body(request_of([b"x"] * 5), limit=5) == b"xxxxx"


@pytest.mark.parametrize(
    "text", [b'{"a":1,"a":1}', b"NaN", b"[Infinity]", b"-Infinity", b"\xff", b"", b"[" * 100_000]
)
def test_strict_json_refuses_what_readers_disagree_on(text: bytes) -> None:
    with pytest.raises(NotStrictJsonError):
        strict_json(text)


def test_uvicorn_is_told_to_print_nothing_of_a_request() -> None:
    chosen = uvicorn_settings()
    assert chosen["access_log"] is False
    assert chosen["log_config"] is None
    assert chosen["server_header"] is False
    assert chosen["proxy_headers"] is False
    assert chosen["limit_concurrency"] and chosen["timeout_graceful_shutdown"]


@pytest.fixture
def caught() -> Any:
    records: list[str] = []

    class Catch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(self.format(record))

    logger = logging.getLogger("uvicorn.error")
    handler = Catch()
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)
    for held in list(logger.filters):
        if isinstance(held, ClassOnly):
            logger.removeFilter(held)


def test_hush_leaves_the_class_of_an_exception_only(caught: list[str]) -> None:
    hush("uvicorn.error")
    hush("uvicorn.error")
    try:
        raise LookupError(CANARY)
    except LookupError as error:
        logging.getLogger("uvicorn.error").error(f"Failed\nwith {CANARY}", exc_info=error)
    assert caught == ["Failed: LookupError"]
