"""Who asks, and for which conversation: the first two questions of every customer route."""

from __future__ import annotations

import logging
from typing import Protocol

from starlette.requests import Request

from listen_finalization.auth.outcome import Reason, Refused, Verified
from listen_finalization.domain.identity import identifier_fault
from listen_finalization.http.problems import Kind, ProblemError
from listen_finalization.observe.signals import Event, Signals

_KINDS = {401: Kind.UNAUTHENTICATED, 403: Kind.FORBIDDEN, 503: Kind.IDENTITY_UNAVAILABLE}


class Verifier(Protocol):
    """Checks the values of a request's Authorization headers."""

    async def verify(self, authorization: list[str]) -> Verified | Refused: ...


async def identified(request: Request, verifier: Verifier, signals: Signals) -> Verified | Refused:
    """Judge the request's token; a refusal is told of. Nothing else of the request is read."""
    identity = await verifier.verify(request.headers.getlist("authorization"))
    if isinstance(identity, Refused):
        signals.emit(Event.TOKEN_REFUSED, code=identity.reason, level=logging.WARNING)
    return identity


class Callers:
    """Turns a request's token into a uid; nothing else of the request is looked at."""

    def __init__(self, verifier: Verifier, signals: Signals) -> None:
        self._verifier = verifier
        self._signals = signals

    async def uid(self, request: Request) -> str:
        """Return the proven user. Raises `ProblemError` with 401, 403 or 503."""
        identity = await identified(request, self._verifier, self._signals)
        if isinstance(identity, Verified):
            return identity.subject
        raise ProblemError(_KINDS[identity.status], headers=_challenge(identity))


def _challenge(refused: Refused) -> dict[str, str]:
    """Return the challenge of a 401 (RFC 6750, section 3)."""
    if refused.status != 401:
        return {}
    error = "" if refused.reason is Reason.MISSING else ' error="invalid_token"'
    return {"WWW-Authenticate": f"Bearer{error}"}


def conversation_id(request: Request) -> str:
    """Return the path's conversation id.

    An id that could not name a document is answered like one that names none: no conversation can
    have it, and one answer for all of them tells nothing.
    """
    value = str(request.path_params["conversation_id"])
    if identifier_fault(value) is not None:
        raise ProblemError(Kind.CONVERSATION_NOT_FOUND)
    return value
