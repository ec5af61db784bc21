"""From exceptions to problem documents, for the whole application."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from listen_finalization.errors import StoreBusyError, StoreError, ValueRefusedError
from listen_finalization.http.problems import PROBLEMS, Kind, ProblemError, document, problem
from listen_finalization.observe.signals import Event, Signals

Handler = Callable[[Request, Any], Coroutine[Any, Any, Response]]

_STATUSES: Mapping[int, Kind] = {
    401: Kind.UNAUTHENTICATED,
    403: Kind.FORBIDDEN,
    404: Kind.NOT_FOUND,
    405: Kind.METHOD_NOT_ALLOWED,
    413: Kind.BODY_TOO_LARGE,
    415: Kind.UNSUPPORTED_MEDIA_TYPE,
    422: Kind.INVALID_REQUEST,
    429: Kind.RATE_LIMITED,
}
"""Problems for what the framework refuses by itself, by status."""

_EVENTS = {Kind.INVALID_REQUEST: Event.BODY_REFUSED, Kind.RATE_LIMITED: Event.RATE_LIMITED}


def handlers(signals: Signals) -> dict[int | type[Exception], Handler]:
    """Return the application's exception handlers; what they do not know ends in `LastResort`."""

    async def refused(request: Request, error: ProblemError) -> Response:
        del request
        if error.kind in _EVENTS:
            signals.emit(_EVENTS[error.kind], level=logging.WARNING)
        return problem(error.kind, fields=error.fields, headers=error.headers)

    async def store(request: Request, fault: StoreError) -> Response:
        del request
        signals.emit(Event.STORE_FAULT, fault=fault, level=logging.ERROR)
        return problem(_store_kind(fault))

    return {
        ProblemError: refused,
        StoreError: store,
        HTTPException: _framework,
        RequestValidationError: _undeclared,
    }


def _store_kind(fault: StoreError) -> Kind:
    """No repeat heals a value that cannot be stored; all other trouble is ours and passes."""
    if isinstance(fault, ValueRefusedError):
        return Kind.INVALID_REQUEST
    return Kind.STORE_BUSY if isinstance(fault, StoreBusyError) else Kind.STORE_UNAVAILABLE


async def _framework(request: Request, error: HTTPException) -> Response:
    """Answer for what starlette raises; a fault of ours is left to `LastResort`."""
    del request
    if error.status_code >= 500:
        raise error
    allow = (error.headers or {}).get("Allow")
    kind = _STATUSES.get(error.status_code, Kind.BAD_REQUEST)
    return problem(kind, headers={"Allow": allow} if allow else None)


async def _undeclared(request: Request, error: RequestValidationError) -> Response:
    """Answer for a route that lets the framework validate; its errors hold the input."""
    del request, error
    return problem(Kind.INVALID_REQUEST)


class ProblemIndex:
    """Explains a problem type at its own address."""

    async def show(self, request: Request) -> Response:
        """Return the type's document, as an answer of 200."""
        name = request.path_params["kind"]
        if name not in PROBLEMS:
            raise ProblemError(Kind.NOT_FOUND)
        return JSONResponse(document(Kind(name)))
