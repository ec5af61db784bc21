"""The customer's two routes: finalize one conversation by its id, and ask how that stands."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from listen_finalization.admission import Admission
from listen_finalization.domain.codes import Actor, RefusalCode
from listen_finalization.domain.commands import Admit
from listen_finalization.domain.decision import Answer, Refused
from listen_finalization.http.answers import finalization_answer, finalize_answer
from listen_finalization.http.caller import Callers, conversation_id
from listen_finalization.http.finalization import Finalization, Finalizations, told
from listen_finalization.http.limiter import RateLimiter
from listen_finalization.http.models import FinalizeRequest, validated
from listen_finalization.http.problems import FieldCode, FieldFault, Kind, ProblemError
from listen_finalization.http.requests import json_body, parsed

MAX_BODY = 64 * 1024
MAX_CONTEXT = 16 * 1024
"""Bytes of the calendar context as it is stored, so that the document keeps room for a record."""

KEY_HEADERS = "x-byok-"
_CONTEXT_TOO_LONG = FieldFault("calendar_meeting_context", FieldCode.TOO_LONG)

REFUSALS: Mapping[RefusalCode, Kind] = {
    RefusalCode.CONVERSATION_NOT_FOUND: Kind.CONVERSATION_NOT_FOUND,
    RefusalCode.CONVERSATION_EMPTY: Kind.CONVERSATION_EMPTY,
    RefusalCode.CONVERSATION_DISCARDED: Kind.CONVERSATION_DISCARDED,
    RefusalCode.CONVERSATION_NOT_OURS: Kind.CONVERSATION_NOT_OURS,
    RefusalCode.CONVERSATION_FULL: Kind.CONVERSATION_FULL,
    RefusalCode.SCHEMA_NEWER: Kind.STORE_UNAVAILABLE,
}
"""What a refused admission is answered with; a settled conversation is answered for itself."""


class CustomerRoutes:
    """`POST .../finalize` and `GET .../finalization`.

    Every refusal is a `ProblemError` or a `StoreError`; the application turns both into answers.
    """

    def __init__(
        self,
        callers: Callers,
        admission: Admission,
        finalizations: Finalizations,
        limiter: RateLimiter,
        *,
        durable: bool,
        max_attempts: int,
    ) -> None:
        """`durable` says whether a durable worker is fully configured in this process."""
        self._callers = callers
        self._admission = admission
        self._finalizations = finalizations
        self._limiter = limiter
        self._durable = durable
        self._max_attempts = max_attempts

    async def finalize(self, request: Request) -> Response:
        """Admit the conversation and answer after the commit; a repeat changes nothing."""
        uid = await self._callers.uid(request)
        key = conversation_id(request)
        refuse_keys(request)
        if not self._durable:
            raise ProblemError(Kind.NOT_CONFIGURED)
        command = await _command(request, uid, key)
        self._spend(uid)
        answer = await self._admission.admit(command)
        found = await self._after(answer, uid, key)
        return JSONResponse(finalize_answer(found).model_dump(mode="json"))

    async def finalization(self, request: Request) -> Response:
        """Tell how the finalization of the caller's own conversation stands."""
        uid = await self._callers.uid(request)
        found = await self._finalizations.read(uid, conversation_id(request))
        if isinstance(found, Kind):
            raise ProblemError(found)
        answer = finalization_answer(found, max_attempts=self._max_attempts)
        wait = answer.poll_after_seconds
        headers = {} if wait is None else {"Retry-After": str(wait)}
        return JSONResponse(answer.model_dump(mode="json"), headers=headers)

    def _spend(self, uid: str) -> None:
        wait = self._limiter.take(uid)
        if wait > 0:
            raise ProblemError(Kind.RATE_LIMITED, headers={"Retry-After": str(math.ceil(wait))})

    async def _after(self, answer: Answer, uid: str, key: str) -> Finalization:
        """Say how the conversation stands after an admission; unchanged ones are read."""
        if isinstance(answer, Refused):
            if answer.code is not RefusalCode.CONVERSATION_SETTLED:
                raise ProblemError(REFUSALS.get(answer.code, Kind.INTERNAL_ERROR))
            found = await self._finalizations.read(uid, key)
        elif answer.conversation is not None:
            found = told(answer.conversation, answer.job)
        else:
            found = await self._finalizations.read(uid, key)
        if found is Kind.NOT_FINALIZED:
            raise ProblemError(Kind.CONVERSATION_NOT_OURS)
        if isinstance(found, Kind):
            raise ProblemError(found)
        return found


def refuse_keys(request: Request) -> None:
    """Refuse a request with keys of the user's own, whatever they hold; they are not read."""
    if any(name.startswith(KEY_HEADERS) for name in request.headers.keys()):  # noqa: SIM118
        raise ProblemError(Kind.USE_LIVE_SESSION)


async def _command(request: Request, uid: str, key: str) -> Admit:
    """Build the admission that the body asks for. Raises `ProblemError`."""
    body = await json_body(request, limit=MAX_BODY)
    asked = validated(FinalizeRequest, parsed(body)) if body else FinalizeRequest()
    context = _context(asked)
    return Admit(uid, key, Actor.CUSTOMER, force_process=asked.force_process, context=context)


def _context(asked: FinalizeRequest) -> dict[str, Any] | None:
    given = asked.calendar_meeting_context
    if given is None:
        return None
    context = given.model_dump(mode="json", exclude_none=True)
    if len(json.dumps(context, ensure_ascii=False).encode()) > MAX_CONTEXT:
        raise ProblemError(Kind.INVALID_REQUEST, fields=[_CONTEXT_TOO_LONG])
    return context
