"""Liveness and readiness: which part of this process is not ready, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from listen_finalization.errors import StoreError
from listen_finalization.ports import Outbox
from listen_finalization.processing.slots import Slots

_NOBODY = "readiness"
"""An id that no job has, and that every store must ask its database for."""

PART_TIMEOUT = 2.0
"""Seconds within which a part must have answered."""


class NotReady(StrEnum):
    """Why a part is not ready."""

    STORE_BROKEN = "store_broken"
    STORE_UNAVAILABLE = "store_unavailable"
    SLOTS_EXHAUSTED = "slots_exhausted"
    TIMEOUT = "timeout"
    FAULT = "fault"


Part = Callable[[], Awaitable[NotReady | None]]
"""Answers None when its part of the process is ready."""


class HealthRoutes:
    """`/livez` says that the loop turns, `/readyz` whether requests should be sent here."""

    def __init__(self, parts: Mapping[str, Part], *, timeout: float = PART_TIMEOUT) -> None:
        """`parts` are named for operators; each is asked at every request, all at once."""
        self._parts = dict(parts)
        self._timeout = timeout

    async def live(self, request: Request) -> Response:
        del request
        return JSONResponse({"live": True})

    async def ready(self, request: Request) -> Response:
        """Answer 200 when every part is ready, else 503; the body names each part."""
        del request
        reasons = await asyncio.gather(*(self._ask(part) for part in self._parts.values()))
        told = {
            name: {"ok": reason is None, "reason": reason}
            for name, reason in zip(self._parts, reasons, strict=True)
        }
        ready = not any(reasons)
        return JSONResponse({"ready": ready, "parts": told}, 200 if ready else 503)

    async def _ask(self, part: Part) -> NotReady | None:
        try:
            async with asyncio.timeout(self._timeout):
                return await part()
        except TimeoutError:
            return NotReady.TIMEOUT
        except Exception:  # noqa: BLE001 - a part that cannot tell is not ready
            return NotReady.FAULT


def store_part(outbox: Outbox, broken: Callable[[], bool]) -> Part:
    """Red when the process must end for its store's sake, or the store cannot be read."""

    async def ask() -> NotReady | None:
        if broken():
            return NotReady.STORE_BROKEN
        try:
            await outbox.get(_NOBODY)
        except StoreError:
            return NotReady.STORE_BROKEN if broken() else NotReady.STORE_UNAVAILABLE
        return None

    return ask


def slots_part(slots: Slots) -> Part:
    """Red when every slot is held by a step that outlived its run (contract 9)."""

    async def ask() -> NotReady | None:
        return NotReady.SLOTS_EXHAUSTED if slots.exhausted else None

    return ask
