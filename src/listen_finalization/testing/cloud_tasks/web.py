"""A small HTTP server on loopback: the key document, and the fault switches.

| request | answer |
|---|---|
| `GET /certs` | the key document (JWKS), fresh for an hour |
| `GET /faults` | what is switched on, with the counts that are left, and what was hit |
| `PUT /faults/KIND` | switches a fault on; the body is `{}` or the fields of `Fault` but `kind` |
| `DELETE /faults/KIND`, `DELETE /faults` | switches one or all off |
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from typing import Any

from listen_finalization.testing.cloud_tasks.faults import Fault, FaultError, FaultKind, Faults
from listen_finalization.testing.cloud_tasks.identity import KEY_MAX_AGE, TaskIdentity
from listen_finalization.testing.cloud_tasks.refusals import Code

MAX_BODY = 4_096
"""Bytes of a request's body."""
PATIENCE = 10.0
"""Seconds for which a request may take to arrive."""
_WORDS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}
_NO_REQUEST = (
    OSError,
    TimeoutError,
    ValueError,
    asyncio.IncompleteReadError,
    asyncio.LimitOverrunError,
)
"""A request that is none, is too large or does not arrive, and a caller that went away."""
_Answer = tuple[int, Any]


class WebServer:
    """Serves the keys of an identity and the switches of some faults, one request a connection."""

    def __init__(self, identity: TaskIdentity, faults: Faults) -> None:
        self._identity = identity
        self._faults = faults
        self._server: asyncio.Server | None = None

    async def start(self, opened: socket.socket) -> None:
        """Serve on a socket that is bound; it is closed with the server."""
        self._server = await asyncio.start_server(self._serve, sock=opened)

    def stop(self) -> None:
        """Close the port, without waiting for callers that are slow; may be called again."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                writer.write(self._respond(*await _request(reader)))
                await writer.drain()
        except _NO_REQUEST:
            pass  # it gets no answer
        finally:
            writer.close()

    def _respond(self, method: str, path: str, body: bytes) -> bytes:
        status, document = self._answer(method, path.partition("?")[0], body)
        text = json.dumps(document).encode()
        fresh = f"public, max-age={KEY_MAX_AGE}, must-revalidate"
        control = fresh if path.startswith("/certs") else "no-store"
        head = (
            f"HTTP/1.1 {status} {_WORDS[status]}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(text)}\r\nCache-Control: {control}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + text

    def _answer(self, method: str, path: str, body: bytes) -> _Answer:
        _, place, *rest = path.split("/")
        if place == "certs" and not rest:
            return (200, self._identity.jwks()) if method == "GET" else (405, {"error": "GET only"})
        kind = _kind(rest)
        if place != "faults" or kind is ...:
            return 404, {"error": f"known: /certs, /faults, /faults/KIND of {', '.join(FaultKind)}"}
        verbs: Mapping[str, Callable[[], _Answer]] = {
            "GET": self._shown,
            "PUT": lambda: self._set(kind, body),
            "DELETE": lambda: self._cleared(kind),
        }
        act = verbs.get(method)
        return act() if act is not None else (405, {"error": "GET, PUT or DELETE"})

    def _shown(self) -> _Answer:
        active = [shown(fault) for fault in self._faults.active()]
        return 200, {"faults": active, "hits": dict(self._faults.hits)}

    def _set(self, kind: FaultKind | None, body: bytes) -> _Answer:
        if kind is None:
            return 405, {"error": "PUT /faults/KIND"}
        try:
            self._faults.set(fault_from(kind, json.loads(body or b"{}")))
        except FaultError as refused:
            return 400, {"error": str(refused)}
        except ValueError:
            return 400, {"error": "the body must be a JSON object"}
        return self._shown()

    def _cleared(self, kind: FaultKind | None) -> _Answer:
        self._faults.clear(kind)
        return self._shown()


def fault_from(kind: FaultKind, fields: Any) -> Fault:
    """Return the fault of a JSON object. Raises `FaultError`, naming the field that is wrong."""
    if not isinstance(fields, dict):
        raise FaultError("the body must be a JSON object")
    for name, value in fields.items():
        fits = _FIELDS.get(name)
        if fits is None:
            raise FaultError(f"the fields are {', '.join(_FIELDS)}")
        if not fits(value):
            raise FaultError(f"{name} has a wrong value")
    found = dict(fields)
    if "code" in found:
        found["code"] = Code(found["code"])
    if "methods" in found:
        found["methods"] = tuple(found["methods"])
    return Fault(kind, **found)


def shown(fault: Fault) -> dict[str, Any]:
    """Return a fault as the control address tells it: the fields that are set."""
    told = {name: getattr(fault, name) for name in ("kind", "share", *_FIELDS)}
    return {name: value for name, value in told.items() if value is not None}


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "count": lambda value: type(value) is int,
    "share": _number,
    "code": lambda value: value in tuple(Code),
    "seconds": _number,
    "methods": lambda value: isinstance(value, list) and all(isinstance(x, str) for x in value),
}


def _kind(rest: list[str]) -> Any:
    """Return the kind in a path, None where there is none, `...` for one that does not exist."""
    if not rest or rest == [""]:
        return None
    return FaultKind(rest[0]) if len(rest) == 1 and rest[0] in {*FaultKind} else ...


async def _request(reader: asyncio.StreamReader) -> tuple[str, str, bytes]:
    """Read one HTTP/1 request. Raises `ValueError` for what is none or is too large."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    size = 0
    for line in head[1:]:
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            size = int(value)
    if not 0 <= size <= MAX_BODY:
        raise ValueError
    return method, path, await reader.readexactly(size)
