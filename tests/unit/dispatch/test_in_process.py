"""A delivery without a socket reaches the application whole, and so does its answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from listen_finalization.dispatch.in_process import InProcessWorker

TASK = {"job_id": "x", "dispatch_generation": 3}


async def echo(request: Request) -> Response:
    told: dict[str, Any] = {
        "method": request.method,
        "body": json.loads(await request.body()),
        "headers": dict(request.headers),
    }
    text = json.dumps(told)
    return StreamingResponse(iter([text[:10], text[10:]]), status_code=207)


async def broken(request: Request) -> Response:
    raise LookupError(request.url.path)


APP = Starlette(routes=[Route("/echo", echo, methods=["POST"]), Route("/broken", broken)])


async def test_the_application_sees_the_body_and_the_headers_as_sent() -> None:
    answer = await InProcessWorker(APP).post("/echo", json=TASK, headers={"Authorization": "t"})
    told = answer.json()
    assert answer.status == 207
    assert (told["method"], told["body"]) == ("POST", TASK)
    assert told["headers"] == {
        "content-type": "application/json",
        "content-length": str(len(json.dumps(TASK, separators=(",", ":")))),
        "authorization": "t",
    }


async def test_a_path_without_a_route_is_answered_and_is_no_json() -> None:
    answer = await InProcessWorker(APP).post("/other", json=TASK, headers={})
    assert answer.status == 404
    with pytest.raises(ValueError, match="Expecting value"):
        answer.json()


async def test_what_the_application_raises_reaches_the_dispatcher() -> None:
    with pytest.raises(LookupError):
        await InProcessWorker(Starlette(routes=[Route("/b", broken, methods=["POST"])])).post(
            "/b", json=TASK, headers={}
        )
