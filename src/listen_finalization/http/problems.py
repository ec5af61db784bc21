"""Every error that a customer can get, as data, and its one form (RFC 9457).

A `type` is the reference `/problems/<kind>`, resolved against the address that was asked; the
application answers there with what is said here. `code` is the same name as one word for programs.
Nothing of a request is ever repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from starlette.responses import JSONResponse, Response

from listen_finalization.errors import ListenFinalizationError

MEDIA_TYPE = "application/problem+json"
PATH = "/problems"
MAX_FIELDS = 10
"""How many faulty fields one answer names."""


class Kind(StrEnum):
    """The closed list of problem types."""

    BAD_REQUEST = "bad-request"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not-found"
    CONVERSATION_NOT_FOUND = "conversation-not-found"
    NOT_FINALIZED = "not-finalized"
    METHOD_NOT_ALLOWED = "method-not-allowed"
    BODY_TIMEOUT = "body-timeout"
    USE_LIVE_SESSION = "use-live-session"
    CONVERSATION_EMPTY = "conversation-empty"
    CONVERSATION_DISCARDED = "conversation-discarded"
    CONVERSATION_NOT_OURS = "conversation-not-ours"
    CONVERSATION_FULL = "conversation-full"
    CONVERSATION_CLOSED = "conversation-closed"
    BODY_TOO_LARGE = "body-too-large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported-media-type"
    INVALID_REQUEST = "invalid-request"
    RATE_LIMITED = "rate-limited"
    INTERNAL_ERROR = "internal-error"
    IDENTITY_UNAVAILABLE = "identity-unavailable"
    NOT_CONFIGURED = "not-configured"
    STORE_BUSY = "store-busy"
    STORE_UNAVAILABLE = "store-unavailable"


class FieldCode(StrEnum):
    """What is wrong with one field of a request."""

    MISSING = "missing"
    UNKNOWN_FIELD = "unknown_field"
    WRONG_TYPE = "wrong_type"
    TOO_LONG = "too_long"
    TOO_SHORT = "too_short"
    OUT_OF_RANGE = "out_of_range"
    INVALID = "invalid"


class FieldFault(NamedTuple):
    """A field by its path in our own schema; of an unknown field, the object that held it."""

    field: str
    code: FieldCode


@dataclass(frozen=True, slots=True)
class ProblemType:
    """One type: its status, its title, when it is answered, and seconds until a repeat helps."""

    status: int
    title: str
    when: str
    retry_after: int | None = None


# fmt: off
PROBLEMS: Mapping[Kind, ProblemType] = {
    Kind.BAD_REQUEST: ProblemType(
        400, "Bad request", "The request cannot be understood."),
    Kind.UNAUTHENTICATED: ProblemType(
        401, "Not authenticated", "The request has no bearer token, or one that is not good."),
    Kind.FORBIDDEN: ProblemType(
        403, "Not allowed", "The token is good, but not for this service."),
    Kind.NOT_FOUND: ProblemType(
        404, "No such path", "This service has nothing at the path that was asked for."),
    Kind.CONVERSATION_NOT_FOUND: ProblemType(
        404, "No such conversation",
        "The caller has no conversation of this id, or it was deleted."),
    Kind.NOT_FINALIZED: ProblemType(
        404, "Not finalized", "The conversation exists and no finalization was asked for yet."),
    Kind.METHOD_NOT_ALLOWED: ProblemType(
        405, "Method not allowed", "The path exists, but not for this method."),
    Kind.BODY_TIMEOUT: ProblemType(
        408, "Body too slow", "The body did not arrive in time."),
    Kind.USE_LIVE_SESSION: ProblemType(
        409, "Use the live session",
        "The request carries keys of the caller's own. They are taken by the live session only; "
        "nothing was changed."),
    Kind.CONVERSATION_EMPTY: ProblemType(
        409, "Nothing to finalize", "The conversation has no words and no photos."),
    Kind.CONVERSATION_DISCARDED: ProblemType(
        409, "Discarded", "The conversation was discarded; it is left as it is."),
    Kind.CONVERSATION_NOT_OURS: ProblemType(
        409, "Not to be finalized here",
        "The conversation is in a status that another part of the application owns."),
    Kind.CONVERSATION_FULL: ProblemType(
        409, "No room for a record",
        "The conversation's document is so large that a finished record does not fit into it."),
    Kind.CONVERSATION_CLOSED: ProblemType(
        409, "Closed", "The conversation was deleted or discarded and takes no more segments."),
    Kind.BODY_TOO_LARGE: ProblemType(
        413, "Body too large", "The body is larger than this route takes."),
    Kind.UNSUPPORTED_MEDIA_TYPE: ProblemType(
        415, "Not JSON", "A body must be sent as application/json."),
    Kind.INVALID_REQUEST: ProblemType(
        422, "Invalid request", "Fields of the request are not as described; `fields` names them."),
    Kind.RATE_LIMITED: ProblemType(
        429, "Too many requests", "The caller asks more often than is allowed.", 1),
    Kind.INTERNAL_ERROR: ProblemType(
        500, "Internal error",
        "Something unexpected went wrong here; the request may be repeated."),
    Kind.IDENTITY_UNAVAILABLE: ProblemType(
        503, "Identity cannot be checked",
        "The keys that tokens are checked with cannot be fetched now.", 5),
    Kind.NOT_CONFIGURED: ProblemType(
        503, "Finalization is not configured",
        "No durable worker is configured here; nothing was changed.", 300),
    Kind.STORE_BUSY: ProblemType(
        503, "Busy", "The store is contended; send the same request again.", 1),
    Kind.STORE_UNAVAILABLE: ProblemType(
        503, "Store unavailable",
        "The store does not take requests now; send the same request again.", 30),
}
# fmt: on


class ProblemError(ListenFinalizationError):
    """A request is refused with a problem document."""

    def __init__(
        self,
        kind: Kind,
        *,
        fields: Iterable[FieldFault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(PROBLEMS[kind].title)
        self.kind = kind
        self.fields = tuple(fields)
        self.headers = dict(headers or {})


def problem(
    kind: Kind,
    *,
    fields: Iterable[FieldFault] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return the answer of a problem type; `headers` may replace its Retry-After."""
    told = PROBLEMS[kind]
    sent = {} if told.retry_after is None else {"Retry-After": str(told.retry_after)}
    sent.update(headers or {})
    return JSONResponse(document(kind, fields), told.status, sent, media_type=MEDIA_TYPE)


def document(kind: Kind, fields: Iterable[FieldFault] = ()) -> dict[str, Any]:
    """Return the document itself."""
    told = PROBLEMS[kind]
    shown: dict[str, Any] = {
        "type": f"{PATH}/{kind}",
        "code": kind.replace("-", "_"),
        "title": told.title,
        "status": told.status,
        "detail": told.when,
    }
    named = [{"field": fault.field, "code": fault.code} for fault in fields][:MAX_FIELDS]
    return {**shown, "fields": named} if named else shown
