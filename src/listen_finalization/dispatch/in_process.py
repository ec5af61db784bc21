"""One request to an ASGI application of this process: no socket, but the whole route."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Protocol

_Message = MutableMapping[str, Any]
Application = Callable[
    [_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]],
    Awaitable[None],
]


class Answered(Protocol):
    """What came back; an `httpx.Response` is one."""

    def json(self) -> Any:
        """Return the body as JSON. Raises `ValueError` where it is none."""
        ...


class Worker(Protocol):
    """Takes deliveries; an `httpx.AsyncClient` does, and `InProcessWorker` without a socket."""

    async def post(self, path: str, /, *, json: Any, headers: Mapping[str, str]) -> Answered: ...


@dataclass(slots=True)
class Answer:
    """The status and body of one answer."""

    status: int = 0
    body: bytearray = field(default_factory=bytearray, repr=False)

    def json(self) -> Any:
        return json.loads(self.body)


class InProcessWorker:
    """Posts to an application as a server would; what the application raises reaches the caller."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def post(self, path: str, /, *, json: Any, headers: Mapping[str, str]) -> Answer:
        """Send one JSON body and return the whole answer."""
        sent = encoded(json)
        incoming = [{"type": "http.request", "body": sent, "more_body": False}]
        answer = Answer()

        async def receive() -> _Message:
            if not incoming:
                await asyncio.Event().wait()  # a caller that stays: it never hangs up
            return incoming.pop()

        async def send(message: _Message) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
            elif message["type"] == "http.response.body":
                answer.body += message.get("body", b"")

        await self._application(_scope(path, headers, len(sent)), receive, send)
        return answer


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _scope(path: str, headers: Mapping[str, str], size: int) -> _Message:
    told = {"content-type": "application/json", "content-length": str(size), **headers}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in told.items()],
        "client": None,
        "server": None,
        "state": {},
    }
