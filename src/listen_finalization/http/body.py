"""Reading a request body within bounds, and JSON without its ambiguities."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import Request

from listen_finalization.errors import ListenFinalizationError

PATIENCE = 20.0
"""Seconds within which a whole body must have come: uvicorn itself waits for ever."""


class BodyTooLargeError(ListenFinalizationError):
    """The request body is larger than the route takes."""


class BodyTimeoutError(ListenFinalizationError):
    """The request body did not arrive in time."""


class NotStrictJsonError(ListenFinalizationError):
    """The text is not JSON in UTF-8, names a key twice, or holds a number that JSON has not."""


async def read_body(request: Request, *, limit: int, patience: float = PATIENCE) -> bytes:
    """Return the body, at most `limit` bytes.

    Raises `BodyTooLargeError` as soon as more was announced or has come, `BodyTimeoutError` after
    `patience` seconds, and starlette's `ClientDisconnect` where the client left before the end.
    """
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > limit:
        raise BodyTooLargeError
    try:
        async with asyncio.timeout(patience):
            return await _collected(request, limit)
    except TimeoutError as error:
        raise BodyTimeoutError from error


async def _collected(request: Request, limit: int) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        if len(body) + len(piece) > limit:
            raise BodyTooLargeError
        body += piece
    return bytes(body)


def strict_json(body: bytes) -> Any:
    """Parse JSON that means the same to every reader. Raises `NotStrictJsonError`.

    UTF-8 only; no repeated key, no NaN or Infinity, no nesting beyond the interpreter's. A number
    too large for a float comes out infinite: refuse it by its field.
    """
    try:
        text = body.decode("utf-8")
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise NotStrictJsonError from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise NotStrictJsonError
    return fields


def _refused(_: str) -> None:
    raise NotStrictJsonError
