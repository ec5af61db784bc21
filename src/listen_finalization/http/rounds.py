"""The reconciler's trigger, for hosts that scale to zero: an external scheduler posts here.

Internal: it is in no OpenAPI document. The body is not read.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse

from listen_finalization.auth.outcome import Refused
from listen_finalization.errors import StoreError
from listen_finalization.http.caller import Verifier, identified
from listen_finalization.observe.signals import Event, Signals

RETRY_AFTER = "60"

Start = Callable[[], Awaitable[Mapping[str, int]]]
"""Runs one round and returns its counts. Raises `StoreError`."""


class RoundRoute:
    """The endpoint of `POST /v1/conversation-finalization-jobs/reconcile`."""

    def __init__(self, verifier: Verifier, start: Start, signals: Signals) -> None:
        self._verifier = verifier
        self._start = start
        self._signals = signals

    async def __call__(self, request: Request) -> JSONResponse:
        """Run one round, or skip it where another is young; answer its counts, or 503."""
        identity = await identified(request, self._verifier, self._signals)
        if isinstance(identity, Refused):
            return JSONResponse({"status": "refused", "code": identity.reason}, identity.status)
        try:
            counts = await self._start()
        except StoreError as fault:
            self._signals.emit(Event.ROUND_FAILED, fault=fault, level=logging.ERROR)
            headers = {"Retry-After": RETRY_AFTER}
            return JSONResponse({"status": "unavailable", "code": None}, 503, headers)
        return JSONResponse({"status": "done", "round": dict(counts)})
