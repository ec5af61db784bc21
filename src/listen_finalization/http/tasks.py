"""The worker route: token, then body, then the finalizer, then one answer from a table.

Internal: it is in no OpenAPI document. Nothing of a request counts before its token is good.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from listen_finalization.auth.outcome import Refused
from listen_finalization.domain.job import MAX_COUNT
from listen_finalization.finalizer import Delivery, Finalizer, Result, ResultKind
from listen_finalization.http.body import (
    BodyTimeoutError,
    BodyTooLargeError,
    NotStrictJsonError,
    read_body,
    strict_json,
)
from listen_finalization.http.caller import Verifier, identified
from listen_finalization.observe.signals import Event, Signals

MAX_BODY = 1_024
"""Bytes. The one valid body has under 100."""

RETRY_AFTER = "30"

_JOB_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_FIELDS = frozenset({"job_id", "dispatch_generation"})

STATUS: Mapping[ResultKind, int] = {
    ResultKind.COMPLETED: 200,
    ResultKind.FENCED: 200,
    ResultKind.DEAD_LETTERED: 200,
    ResultKind.IGNORED: 200,
    ResultKind.DEFERRED: 200,
    ResultKind.BLOCKED: 200,
    ResultKind.UNKNOWN: 404,
    ResultKind.BUSY: 409,
    ResultKind.LOST: 409,
    ResultKind.FAILED: 500,
    ResultKind.UNAVAILABLE: 503,
}
"""The answer to a delivery by what became of it (contract 8)."""


class BodyRefusedError(ValueError):
    """The body is not exactly the two fields of a task."""


class WorkerRoute:
    """The endpoint of `POST /v1/conversation-finalization-jobs/run`."""

    def __init__(self, verifier: Verifier, finalizer: Finalizer, signals: Signals) -> None:
        self._verifier = verifier
        self._finalizer = finalizer
        self._signals = signals

    async def __call__(self, request: Request) -> JSONResponse:
        """Run one delivery."""
        identity = await identified(request, self._verifier, self._signals)
        if isinstance(identity, Refused):
            return _answer(identity.status, "refused", identity.reason)
        try:
            delivery = await self._delivery(request)
        except (BodyRefusedError, BodyTooLargeError, BodyTimeoutError, ClientDisconnect):
            self._signals.emit(Event.BODY_REFUSED, level=logging.WARNING)
            return _answer(400, "refused", "body_invalid")
        return _told(await self._finalizer.run(delivery))

    async def _delivery(self, request: Request) -> Delivery:
        fields = parse_task(await read_body(request, limit=MAX_BODY))
        return Delivery(
            job_id=fields["job_id"],
            generation=fields["dispatch_generation"],
            task_retry=retry_count(request.headers.getlist("x-cloudtasks-taskretrycount")),
        )


def parse_task(body: bytes) -> dict[str, Any]:
    """Return the two fields of a task body. Raises `BodyRefusedError` for anything else."""
    try:
        fields = strict_json(body)
    except NotStrictJsonError as error:
        raise BodyRefusedError from error
    if not isinstance(fields, dict) or fields.keys() != _FIELDS:
        raise BodyRefusedError
    job_id, generation = fields["job_id"], fields["dispatch_generation"]
    if not isinstance(job_id, str) or not _JOB_ID.fullmatch(job_id):
        raise BodyRefusedError
    if type(generation) is not int or not 1 <= generation <= MAX_COUNT:
        raise BodyRefusedError
    return fields


def retry_count(values: list[str]) -> int | None:
    """Return the queue's retry count; None where there is none that can be believed."""
    if len(values) != 1 or not re.fullmatch(r"[0-9]{1,9}", values[0]):
        return None
    return int(values[0])


def _told(result: Result) -> JSONResponse:
    return _answer(STATUS[result.kind], result.kind, result.code)


def _answer(status: int, word: str, code: str | None) -> JSONResponse:
    headers = {"Retry-After": RETRY_AFTER} if status == 503 else None
    return JSONResponse({"status": word, "code": code}, status, headers)
