"""A running stack is asked with patience, and believed in nothing that is not in its contract."""

from __future__ import annotations

import json

import httpx
import pytest

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.faults import CommandError
from listen_finalization.cli.remote import HttpGateway
from listen_finalization.cli.transcripts import Transcript
from listen_finalization.domain.content import Segment
from listen_finalization.http.models import FinalizationAnswer
from listen_finalization.http.problems import PROBLEMS, Kind, document

TOKEN = "canary-token-3c9e"
STANDING = {
    "job_id": "j",
    "status": "leased",
    "terminal": False,
    "retryable": False,
    "attempt_count": 1,
    "max_attempts": 5,
    "dispatch_generation": 1,
    "last_task_retry": 0,
    "failure_code": None,
    "outcome": None,
    "created_at": None,
    "updated_at": None,
    "next_attempt_at": None,
    "poll_after_seconds": 2,
    "steps": [],
    "deliveries": None,
}


class Clock:
    """A clock that moves by what is waited, and keeps it."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def now(self) -> float:
        return sum(self.waits)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def gateway(
    *answers: httpx.Response | Exception, clock: Clock | None = None
) -> tuple[HttpGateway, list[httpx.Request]]:
    """Return a gateway whose stack gives these answers, the last one for ever."""
    waiting, seen, told = list(answers), list[httpx.Request](), clock or Clock()

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        given = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(given, Exception):
            raise given
        return given

    made = HttpGateway(
        "http://stack",
        TOKEN,
        transport=httpx.MockTransport(answer),
        monotonic=told.now,
        sleep=told.sleep,
    )
    return made, seen


def problem(kind: Kind, **headers: str) -> httpx.Response:
    return httpx.Response(PROBLEMS[kind].status, json=document(kind), headers=headers)


def transcript(count: int, text: str = "word") -> Transcript:
    segments = tuple(Segment(f"s{n}", "Ada", n, n + 1, text) for n in range(count))
    return Transcript("talk", "en", segments)


async def test_segments_go_in_bounded_requests_and_none_is_lost() -> None:
    made, seen = gateway(httpx.Response(200, json={"content_version": 1}))
    await made.store(transcript(1_201))
    sent = [json.loads(request.content)["segments"] for request in seen]
    assert [len(batch) for batch in sent] == [500, 500, 201]
    assert [one["id"] for batch in sent for one in batch] == [f"s{n}" for n in range(1_201)]
    assert {request.headers["authorization"] for request in seen} == {f"Bearer {TOKEN}"}


async def test_long_texts_make_smaller_requests() -> None:
    made, seen = gateway(httpx.Response(200, json={"content_version": 1}))
    await made.store(transcript(100, "漢" * 20_000))
    assert all(len(request.content) < 8 * 1024 * 1024 for request in seen)
    assert len(seen) == 2


async def test_a_busy_stack_is_asked_again_when_it_says_so() -> None:
    clock = Clock()
    busy = problem(Kind.STORE_BUSY, **{"retry-after": "2"})
    made, seen = gateway(
        busy, httpx.ConnectError("x"), httpx.Response(200, json=STANDING), clock=clock
    )
    assert (await made.standing("talk")).status == "leased"
    assert len(seen) == 3
    assert clock.waits == [2.0, 0.5]


async def test_a_rate_limit_is_waited_for_beyond_the_patience() -> None:
    clock = Clock()
    limited = [problem(Kind.RATE_LIMITED, **{"retry-after": "30"})] * 5
    done = {"conversation": {"id": "t", "status": "processing", "discarded": False}}
    admitted = httpx.Response(200, json={**done, "job_id": "j", "status": "queued"})
    made, _ = gateway(*limited, admitted, clock=clock)
    await made.admit("talk", force=False)
    assert clock.waits == [30.0] * 5


@pytest.mark.parametrize(
    ("answer", "code", "word"),
    [
        (problem(Kind.UNAUTHENTICATED), ExitCode.REFUSED, "unauthenticated"),
        (problem(Kind.CONVERSATION_CLOSED), ExitCode.REFUSED, "conversation_closed"),
        (problem(Kind.NOT_CONFIGURED), ExitCode.UNAVAILABLE, "not_configured"),
        (problem(Kind.INTERNAL_ERROR), ExitCode.UNAVAILABLE, "internal_error"),
        (httpx.Response(404, text="nginx"), ExitCode.UNAVAILABLE, "not_a_stack"),
        (httpx.Response(500, json={"code": "secret-word"}), ExitCode.UNAVAILABLE, "not_a_stack"),
        (httpx.Response(302, headers={"location": "http://evil"}), 3, "not_a_stack"),
        (httpx.Response(200, json={"status": "flying"}), ExitCode.UNAVAILABLE, "other_version"),
        (httpx.Response(200, text="<html>"), ExitCode.UNAVAILABLE, "other_version"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_answer_that_ends_it_is_told_by_a_bounded_word(
    answer: httpx.Response, code: int, word: str
) -> None:
    made, seen = gateway(answer)
    with pytest.raises(CommandError) as told:
        await made.standing("talk")
    assert (told.value.code, told.value.word) == (code, word)
    assert len(seen) == 1
    assert "secret" not in str(told.value)
    assert TOKEN not in str(told.value) + told.value.remedy


async def test_an_unreachable_stack_is_not_waited_for_long() -> None:
    made, seen = gateway(httpx.ConnectError("canary"))
    with pytest.raises(CommandError) as told:
        await made.store(transcript(1))
    assert told.value.word == "unreachable"
    assert "canary" not in str(told.value)
    assert 1 < len(seen) < 6


async def test_faulty_fields_are_named() -> None:
    body = document(Kind.INVALID_REQUEST) | {
        "fields": [{"field": "segments.3.text", "code": "too_long"}]
    }
    made, _ = gateway(httpx.Response(422, json=body))
    with pytest.raises(CommandError, match=r"segments\.3\.text \(too_long\)") as told:
        await made.store(transcript(1))
    assert told.value.code == ExitCode.USAGE


@pytest.mark.parametrize("hint", [None, 0, 2, 60, 10_000])
def test_the_poll_hint_is_honoured_within_a_bound(hint: int | None) -> None:
    made, _ = gateway(httpx.Response(200))
    answer = FinalizationAnswer.model_validate({**STANDING, "poll_after_seconds": hint})
    assert made.wait(answer, 0) == 0.2
    assert made.wait(answer, 1) == min(hint or 1, 60)


def test_neither_token_nor_url_is_in_the_repr() -> None:
    made, _ = gateway(httpx.Response(200))
    assert TOKEN not in repr(made)
