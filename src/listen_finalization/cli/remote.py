"""A running stack over HTTP: repeats what may be repeated, and believes nothing that it answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.faults import CommandError
from listen_finalization.cli.gateway import refused
from listen_finalization.cli.transcripts import Transcript
from listen_finalization.domain.content import Segment
from listen_finalization.http.models import FinalizationAnswer, FinalizeAnswer, RecordAnswer
from listen_finalization.http.problems import Kind

Model = TypeVar("Model", bound=BaseModel)

BATCH = 500
BATCH_TEXT = 1_000_000
"""Characters of one request's segments, well under the route's 8 MiB in any script."""
REQUEST_SECONDS = 30.0
PATIENCE = 2.0
"""Seconds for which a first contact is tried; what was admitted is asked after for longer."""
POLL_PATIENCE = 60.0
LONGEST_WAIT = 60.0


class HttpGateway:
    """A stack at a base URL, for the user of the token; neither is ever printed."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._monotonic = monotonic
        self._sleep = sleep
        self._client = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=REQUEST_SECONDS,
            trust_env=False,
            transport=transport,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def store(self, transcript: Transcript) -> None:
        path = f"/v1/conversations/{transcript.conversation_id}/segments"
        for batch in _batches(transcript.segments):
            body = {"segments": batch, "language": transcript.language}
            await self._ask("PUT", path, body)

    async def admit(self, conversation_id: str, *, force: bool) -> None:
        path = f"/v1/conversations/{conversation_id}/finalize"
        answer = await self._ask("POST", path, {"force_process": force})
        _read(FinalizeAnswer, answer)

    async def standing(self, conversation_id: str) -> FinalizationAnswer:
        path = f"/v1/conversations/{conversation_id}/finalization"
        return _read(FinalizationAnswer, await self._ask("GET", path, patience=POLL_PATIENCE))

    async def record(self, conversation_id: str) -> RecordAnswer:
        path = f"/v1/conversations/{conversation_id}"
        return _read(RecordAnswer, await self._ask("GET", path, patience=POLL_PATIENCE))

    def wait(self, answer: FinalizationAnswer, looked: int) -> float:
        """Honour the hint of the stack; a short job is not made to wait for the first one."""
        hint = min(float(answer.poll_after_seconds or 1), LONGEST_WAIT)
        return 0.2 if looked == 0 else max(hint, 0.2)

    async def _ask(
        self, method: str, path: str, body: Any = None, *, patience: float = PATIENCE
    ) -> httpx.Response:
        """Send until it is answered for good; every request here may be repeated."""
        ends = self._monotonic() + patience
        while True:
            answer = await self._once(method, path, body)
            if isinstance(answer, httpx.Response) and answer.is_success:
                return answer
            wait, fault = _judged(answer)
            if wait is None or (not _asked_to_wait(answer) and self._monotonic() + wait > ends):
                raise fault
            await self._sleep(wait)

    async def _once(self, method: str, path: str, body: Any) -> httpx.Response | None:
        try:
            return await self._client.request(method, path, json=body)
        except httpx.HTTPError:
            return None


def _judged(answer: httpx.Response | None) -> tuple[float | None, CommandError]:
    """Return the seconds after which a repeat may help, or None, and the fault if it may not."""
    if answer is None:
        return 0.5, _no_stack("the stack at --url cannot be reached", "unreachable")
    kind = _kind(answer)
    if kind is None:
        return None, _no_stack("what answers at --url is no stack of this kind", "not_a_stack")
    fault = refused(kind)
    if kind is Kind.INVALID_REQUEST:
        fault = _named_fields(answer, fault)
    again = answer.status_code in (429, 503) and kind is not Kind.NOT_CONFIGURED
    return (_retry_after(answer) if again else None), fault


def _asked_to_wait(answer: httpx.Response | None) -> bool:
    """Whether the stack is well and only wants fewer requests; --timeout bounds that wait."""
    return answer is not None and answer.status_code == 429


def _retry_after(answer: httpx.Response) -> float:
    text = answer.headers.get("retry-after", "")
    found = float(text) if text.isascii() and text.isdigit() and len(text) < 5 else 1.0
    return min(max(found, 0.2), LONGEST_WAIT)


def _kind(answer: httpx.Response) -> Kind | None:
    """Return the problem type of an answer; nothing outside the closed list counts."""
    try:
        told = answer.json()
        return Kind(str(told["code"]).replace("_", "-"))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _named_fields(answer: httpx.Response, fault: CommandError) -> CommandError:
    named = [
        f"{one['field']} ({one['code']})"
        for one in answer.json().get("fields") or []
        if isinstance(one, dict) and {"field", "code"} <= set(one)
    ]
    if not named:
        return fault
    detail = f"the stack does not take {', '.join(named)}"[:300]
    return CommandError(detail, code=fault.code, remedy=fault.remedy, word=fault.word)


def _no_stack(detail: str, word: str) -> CommandError:
    remedy = "check --url and that `listen-finalization up` runs there"
    return CommandError(detail, code=ExitCode.UNAVAILABLE, remedy=remedy, word=word)


def _read(model: type[Model], answer: httpx.Response) -> Model:
    try:
        return model.model_validate_json(answer.content)
    except ValidationError:
        raise _no_stack("the stack answers in words of another version", "other_version") from None


def _batches(segments: tuple[Segment, ...]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    for one in segments:
        if batch and (len(batch) >= BATCH or size + len(one.text) > BATCH_TEXT):
            yield batch
            batch, size = [], 0
        batch.append(
            {"id": one.id, "speaker": one.speaker, "start": one.start, "end": one.end}
            | {"text": one.text}
        )
        size += len(one.text)
    yield batch
