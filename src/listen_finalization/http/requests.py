"""A customer's body: is it JSON, is it small enough, does it say what it may say."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from listen_finalization.http.body import (
    BodyTimeoutError,
    BodyTooLargeError,
    NotStrictJsonError,
    read_body,
    strict_json,
)
from listen_finalization.http.problems import FieldCode, FieldFault, Kind, ProblemError

NOT_JSON = FieldFault("body", FieldCode.INVALID)


async def json_body(request: Request, *, limit: int) -> bytes:
    """Return the body, empty where there is none. Raises `ProblemError` with 408, 413 or 415."""
    try:
        body = await read_body(request, limit=limit)
    except BodyTooLargeError:
        raise ProblemError(Kind.BODY_TOO_LARGE) from None
    except BodyTimeoutError:
        raise ProblemError(Kind.BODY_TIMEOUT, headers={"Connection": "close"}) from None
    if body and not _is_json(request.headers.getlist("content-type")):
        raise ProblemError(Kind.UNSUPPORTED_MEDIA_TYPE)
    return body


def parsed(body: bytes) -> Any:
    """Return the value of a JSON body. Raises `ProblemError` with 422."""
    try:
        return strict_json(body)
    except NotStrictJsonError:
        raise ProblemError(Kind.INVALID_REQUEST, fields=[NOT_JSON]) from None


def _is_json(values: list[str]) -> bool:
    if len(values) != 1:
        return False
    media_type, _, parameters = values[0].partition(";")
    charset = parameters.strip().lower().replace('"', "")
    return media_type.strip().lower() == "application/json" and charset in ("", "charset=utf-8")
