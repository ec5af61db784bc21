"""The last resort around every route: no exception leaves, and none is shown or printed."""

from __future__ import annotations

import logging

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from listen_finalization.http.problems import Kind, problem
from listen_finalization.observe.signals import Event, Signals

_STARTS = ("http.response.start", "websocket.close", "websocket.http.response.start")
_HEADERS = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
}


class SecurityHeaders:
    """Adds headers to every HTTP answer that has not set them itself. Pure ASGI."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)


class LastResort:
    """Answers an unexpected exception with a bare 500 and logs its class, nothing else.

    Pure ASGI and inside the framework's own handler of errors, which would raise the exception on
    to the server to be printed. A client that left is no fault. Cancellation passes through.
    """

    def __init__(self, app: ASGIApp, signals: Signals) -> None:
        self._app = app
        self._signals = signals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        started = False

        async def noted(message: Message) -> None:
            nonlocal started
            started = started or message["type"] in _STARTS
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except ClientDisconnect:
            return
        except Exception as fault:  # noqa: BLE001 - this is where everything else ends
            self._signals.emit(Event.REQUEST_FAULT, fault=fault, level=logging.ERROR)
            if not started:
                await _answer(scope, receive, send)


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await problem(Kind.INTERNAL_ERROR)(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 1011})
