"""`POST .../finalize`: the order of its questions, its answers, and what it leaves alone."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest
from desk import CANARY, PROJECT, Desk, desk, logged, says
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from listen_finalization.auth.issuer import LocalIssuer
from listen_finalization.domain.codes import ConversationStatus, RefusalCode, Status
from listen_finalization.domain.decision import Answer, Refused
from listen_finalization.domain.identity import job_id
from listen_finalization.errors import (
    RowUnreadableError,
    StoreBusyError,
    StoreFullError,
    StoreUnavailableError,
    ValueRefusedError,
)
from listen_finalization.http.limiter import RateLimiter

PATH = "/v1/conversations/c1/finalize"


async def untouched(made: Desk, key: str = "c1") -> bool:
    """Whether the conversation is as its first segment left it, and no job exists."""
    record = await made.conversations.find("ada", key)
    page = await made.outbox.list()
    still = record is None or (
        record.conversation.status is ConversationStatus.IN_PROGRESS
        and record.conversation.job_id is None
    )
    return still and not page.jobs and not made.dispatcher.jobs


async def test_the_answer_is_a_processing_conversation_with_its_job(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await made.spoken()
        answer = await client.post(PATH)
        key = job_id("ada", "c1", 1)
        assert answer.status_code == 200
        assert answer.json() == {
            "conversation": {"id": "c1", "status": "processing", "discarded": False},
            "job_id": key,
            "status": "queued",
        }
        job = await made.outbox.get(key)
        assert job is not None and job.status is Status.QUEUED
        assert [handed.job_id for handed in made.dispatcher.jobs] == [key]


async def test_a_repeat_is_the_same_answer_and_changes_nothing(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await made.spoken()
        first = await client.post(PATH)
        job = await made.outbox.get(first.json()["job_id"])
        context = {"calendar_meeting_context": {"title": "Other"}, "force_process": True}
        again = await client.post(PATH, json=context)
        assert again.json() == first.json()
        assert await made.outbox.get(first.json()["job_id"]) == job
        content = await made.conversations.content("ada", "c1")
        assert content is not None and content.calendar_context is None


async def test_context_and_force_reach_the_admission(tmp_path: Path) -> None:
    context = {
        "title": "Planning",
        "participants": [{"name": "Grace", "email": "grace@example.com"}, {}],
        "start_time": "2025-03-01T10:00:00.123456789+01:00",
        "end_time": "2025-03-01T10:30:00z",
        "duration_minutes": 30,
        "meeting_link": "https://meet.example/x",
    }
    async with desk(tmp_path) as made, made.client() as client:
        await made.spoken()
        body = {"force_process": True, "calendar_meeting_context": context}
        answer = await client.post(PATH, json=body)
        content = await made.conversations.content("ada", "c1")
        job = await made.outbox.get(answer.json()["job_id"])
        assert content is not None and content.calendar_context == context
        assert job is not None and job.force_process


async def test_a_hand_over_that_fails_does_not_show(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        made.dispatcher.takes = False
        await made.spoken()
        assert (await client.post(PATH)).json()["status"] == "queued"


async def test_a_marked_conversation_is_admitted_as_blocked(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await made.spoken(byok=True)
        answer = await client.post(PATH)
        assert answer.status_code == 200
        assert answer.json()["status"] == "blocked_byok"


@pytest.mark.parametrize("name", ["X-BYOK-OpenAI", "x-byok-", "X-Byok-Anything"])
async def test_keys_are_sent_to_the_live_session_before_any_change(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with desk(tmp_path) as made, made.client() as client:
        await made.spoken()
        answer = await client.post(PATH, headers={name: CANARY})
        says(answer, 409, "use-live-session")
        assert await untouched(made)
        assert CANARY not in logged(caplog.records)


async def test_without_a_durable_worker_nothing_is_touched(tmp_path: Path) -> None:
    async with desk(tmp_path, durable=False) as made, made.client() as client:
        await made.spoken()
        answer = await client.post(PATH, content=b"not even read")
        told = says(answer, 503, "not-configured")
        assert told["code"] == "not_configured"
        assert answer.headers["retry-after"] == "300"
        assert await untouched(made)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Authorization", "Bearer x.y.z")],
        [("Authorization", f"Basic {CANARY}")],
        [("Authorization", ""), ("Authorization", "")],
        [("X-Serverless-Authorization", "Bearer good")],
    ],
)
async def test_the_token_comes_before_everything(
    tmp_path: Path, headers: list[tuple[str, str]]
) -> None:
    async with desk(tmp_path, durable=False) as made, made.client(None) as client:
        answer = await client.post(
            "/v1/conversations/__x__/finalize",
            content=b"{" * 100_000,
            headers=[*headers, ("X-BYOK-Key", CANARY)],
        )
        says(answer, 401, "unauthenticated")
        assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_missing_token_is_not_called_an_invalid_one(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client(None) as client:
        assert (await client.post(PATH)).headers["www-authenticate"] == "Bearer"
        bad = await client.post(PATH, headers={"Authorization": "Bearer a.b.c"})
        assert bad.headers["www-authenticate"] == 'Bearer error="invalid_token"'


async def test_expired_and_foreign_tokens_are_401(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client(None) as client:
        old = LocalIssuer.open(tmp_path.parent, "users", now=lambda: time.time() - 9_000)
        other = LocalIssuer.open(tmp_path / "other", "users")
        tasks = made.issuer.mint_task_token("https://a.example", "a@example.com")
        tokens = [
            old.mint_user_token("ada", PROJECT),
            other.mint_user_token("ada", PROJECT),
            made.issuer.mint_user_token("ada", "another-project"),
            tasks,
        ]
        for token in tokens:
            answer = await client.post(PATH, headers={"Authorization": f"Bearer {token}"})
            says(answer, 401, "unauthenticated")


@pytest.mark.parametrize(
    "body",
    [
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        '{"force_process": true}'.encode("utf-16"),
        b'{"force_process": true, "force_process": true}',
        b'{"force_process": "true"}',
        b'{"force_process": 1}',
        b'{"force_process": null}',
        b'{"force_process": NaN}',
        b'{"canary-7f3a9c": 1}',
        b'{"calendar_meeting_context": {"canary-7f3a9c": 1}}',
        b'{"calendar_meeting_context": {"title": "\\ud800"}}',
        b'{"calendar_meeting_context": {"title": 5}}',
        b'{"calendar_meeting_context": {"duration_minutes": true}}',
        b'{"calendar_meeting_context": {"duration_minutes": 1.5}}',
        b'{"calendar_meeting_context": {"duration_minutes": -1}}',
        b'{"calendar_meeting_context": {"start_time": "canary-7f3a9c"}}',
        b'{"calendar_meeting_context": {"start_time": "2025-02-30T10:00:00Z"}}',
        b'{"calendar_meeting_context": {"start_time": "2025-02-03T10:00:00"}}',
        b'{"calendar_meeting_context": {"start_time": 1700000000}}',
        b'{"calendar_meeting_context": {"participants": [{"name": 1}]}}',
        b'{"calendar_meeting_context": {"notes": ' + b'"' + b"x" * 8_001 + b'"}}',
        b'{"a":' * 10_000,
        b"[" * 60_000,
        b'{"calendar_meeting_context": {"duration_minutes": ' + b"9" * 5_000 + b"}}",
    ],
)
async def test_a_bad_body_is_422_and_changes_nothing(
    tmp_path: Path, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with desk(tmp_path) as made, made.client() as client:
        await made.spoken()
        answer = await client.post(PATH, content=body, headers={"Content-Type": "application/json"})
        told = says(answer, 422, "invalid-request")
        assert told["fields"]
        assert await untouched(made)
        assert CANARY not in logged(caplog.records)


async def test_422_names_the_field_by_its_path(tmp_path: Path) -> None:
    context: dict[str, Any] = {
        "participants": [{}, {"email": "x" * 400, CANARY: CANARY}],
        "notes": 5,
    }
    async with desk(tmp_path) as made, made.client() as client:
        await made.spoken()
        answer = await client.post(PATH, json={"calendar_meeting_context": context})
        told = says(answer, 422, "invalid-request")
        assert told["fields"] == [
            {"field": "calendar_meeting_context.participants.1.email", "code": "too_long"},
            {"field": "calendar_meeting_context.participants.1", "code": "unknown_field"},
            {"field": "calendar_meeting_context.notes", "code": "wrong_type"},
        ]


async def test_a_context_that_would_fill_the_document_is_refused(tmp_path: Path) -> None:
    people = [{"name": "x" * 300, "email": "y" * 300}] * 50
    async with desk(tmp_path) as made, made.client() as client:
        await made.spoken()
        body = {"calendar_meeting_context": {"participants": people}}
        told = says(await client.post(PATH, json=body), 422, "invalid-request")
        assert told["fields"] == [{"field": "calendar_meeting_context", "code": "too_long"}]


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=UTF-8", 200),
        ('application/json;charset="utf-8"', 200),
        ("application/json; charset=latin-1", 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
        (None, 415),
    ],
)
async def test_a_body_must_be_sent_as_json(tmp_path: Path, value: str | None, status: int) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await made.spoken()
        headers = {} if value is None else {"Content-Type": value}
        answer = await client.post(PATH, content=b"{}", headers=headers)
        assert answer.status_code == status
        if status == 415:
            says(answer, 415, "unsupported-media-type")
            assert await untouched(made)


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_over_the_limit_is_413(tmp_path: Path, announced: bool) -> None:
    sent = 0

    async def pieces() -> Any:
        nonlocal sent
        for _ in range(1_000):
            sent += 1
            yield b"x" * 1_024

    async with desk(tmp_path) as made, made.client() as client:
        await made.spoken()
        content = b"x" * 65_537 if announced else pieces()
        headers = {"Content-Type": "application/json"}
        answer = await client.post(PATH, content=content, headers=headers)
        says(answer, 413, "body-too-large")
        assert await untouched(made)


@pytest.mark.parametrize(
    "key", ["%2E%2E", "%2e", "__x__", "a%00b", "a%5Cb", "%7F", "x" * 129, "%C3%A9" * 65]
)
async def test_an_id_that_names_no_document_is_answered_like_an_unknown_one(
    tmp_path: Path, key: str
) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        unknown = await client.post("/v1/conversations/nothing/finalize")
        answer = await client.post(f"/v1/conversations/{key}/finalize")
        assert answer.json() == unknown.json()
        assert answer.status_code == 404


async def test_foreign_unknown_and_deleted_are_one_answer(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await made.spoken("hers", uid="grace")
        await made.spoken("gone")
        await made.conversations.delete("ada", "gone")
        answers = [
            await client.request(verb, f"/v1/conversations/{key}/{tail}")
            for verb, tail in (("POST", "finalize"), ("GET", "finalization"))
            for key in ("hers", "gone", "never")
        ]
        assert len({(a.status_code, a.text, str(sorted(a.headers.items()))) for a in answers}) == 1
        says(answers[0], 404, "conversation-not-found")
        assert not (await made.outbox.list()).jobs


class Refusing:
    """An admission that answers, or raises, one thing."""

    def __init__(self, answer: Answer | Exception) -> None:
        self.answer = answer

    async def admit(self, command: Any) -> Answer:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        (RefusalCode.CONVERSATION_NOT_FOUND, 404, "conversation-not-found"),
        (RefusalCode.CONVERSATION_EMPTY, 409, "conversation-empty"),
        (RefusalCode.CONVERSATION_DISCARDED, 409, "conversation-discarded"),
        (RefusalCode.CONVERSATION_NOT_OURS, 409, "conversation-not-ours"),
        (RefusalCode.CONVERSATION_FULL, 409, "conversation-full"),
        (RefusalCode.SCHEMA_NEWER, 503, "store-unavailable"),
        (RefusalCode.CONVERSATION_SETTLED, 404, "conversation-not-found"),
    ],
)
async def test_each_refusal_has_its_answer(
    tmp_path: Path, code: RefusalCode, status: int, kind: str
) -> None:
    async with desk(tmp_path, admission=Refusing(Refused(code))) as made, made.client() as client:
        says(await client.post(PATH), status, kind)


@pytest.mark.parametrize(
    ("fault", "kind", "wait"),
    [
        (StoreBusyError(CANARY), "store-busy", "1"),
        (StoreFullError(CANARY), "store-unavailable", "30"),
        (StoreUnavailableError(CANARY), "store-unavailable", "30"),
        (RowUnreadableError(CANARY), "store-unavailable", "30"),
    ],
)
async def test_store_trouble_is_503_with_a_time(
    tmp_path: Path,
    fault: Exception,
    kind: str,
    wait: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with desk(tmp_path, admission=Refusing(fault)) as made, made.client() as client:
        answer = await client.post(PATH)
        says(answer, 503, kind)
        assert answer.headers["retry-after"] == wait
        assert CANARY not in logged(caplog.records)


async def test_a_value_that_cannot_be_stored_is_the_callers_fault(tmp_path: Path) -> None:
    async with (
        desk(tmp_path, admission=Refusing(ValueRefusedError())) as made,
        made.client() as client,
    ):
        says(await client.post(PATH), 422, "invalid-request")


async def test_an_unexpected_exception_is_a_bare_500_and_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    broken = Refusing(LookupError(CANARY))
    async with desk(tmp_path, admission=broken) as made, made.client() as client:
        told = says(await client.post(PATH), 500, "internal-error")
        assert set(told) == {"type", "code", "title", "status", "detail"}
    lines = [json.loads(r.message) for r in caplog.records if r.name == "listen_finalization"]
    assert lines == [{"event": "request_fault", "fault": "builtins.LookupError"}]
    assert CANARY not in logged(caplog.records)
    assert "Traceback" not in logged(caplog.records)


async def test_calls_over_the_rate_are_429_for_that_user_alone(tmp_path: Path) -> None:
    limiter = RateLimiter(2, monotonic=lambda: 100.0)
    async with desk(tmp_path, limiter=limiter) as made, made.client() as client:
        await made.spoken()
        assert [(await client.post(PATH)).status_code for _ in range(2)] == [200, 200]
        answer = await client.post(PATH)
        says(answer, 429, "rate-limited")
        assert answer.headers["retry-after"] == "30"
        other = await client.post(PATH, headers=made.token("grace"))
        says(other, 404, "conversation-not-found")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["force_process", "calendar_meeting_context", "title", "participants"])
            | st.text(max_size=5),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(value=json_values)
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_no_json_makes_it_fail(tmp_path: Path, value: object) -> None:
    body = json.dumps(value).encode()
    headers = {"Content-Type": "application/json"}
    generous = RateLimiter(1_000_000)
    async with desk(tmp_path, limiter=generous) as made, made.client() as client:
        answer = await client.post(PATH, content=body, headers=headers)
        assert answer.status_code in (200, 404, 422)
