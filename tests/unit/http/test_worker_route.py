"""The worker route's own part: token, body, retry count, one answer for each result."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from desk import CANARY, PROJECT, desk
from hypothesis import given
from hypothesis import strategies as st

from listen_finalization.auth.issuer import LocalIssuer
from listen_finalization.auth.policy import PolicyName, TokenPolicy
from listen_finalization.auth.verifier import TokenVerifier
from listen_finalization.domain.codes import FailureCode
from listen_finalization.domain.identity import job_id
from listen_finalization.finalizer import Delivery, Result, ResultKind
from listen_finalization.http.tasks import (
    STATUS,
    BodyRefusedError,
    WorkerRoute,
    parse_task,
    retry_count,
)
from listen_finalization.observe.signals import Signals

RUN = "/v1/conversation-finalization-jobs/run"
AUDIENCE = f"https://worker.example{RUN}"
EMAIL = "invoker@example.com"
JOB = job_id("ada", "c1", 1)


class Told:
    """A finalizer that gives one result and remembers what it was asked."""

    def __init__(self) -> None:
        self.result = Result(ResultKind.COMPLETED)
        self.asked: list[Delivery] = []

    async def run(self, delivery: Delivery) -> Result:
        self.asked.append(delivery)
        return self.result


class Bench:
    def __init__(self, client: httpx.AsyncClient, told: Told, issuer: LocalIssuer) -> None:
        self.client = client
        self.told = told
        self.issuer = issuer

    async def deliver(self, body: Any = None, **headers: str) -> httpx.Response:
        sent = {"job_id": JOB, "dispatch_generation": 1} if body is None else body
        content = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        token = self.issuer.mint_task_token(AUDIENCE, EMAIL)
        given = {"Authorization": f"Bearer {token}", **headers}
        return await self.client.post(RUN, content=content, headers=given)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    issuer = LocalIssuer.open(tmp_path.parent, "tasks")
    policy = TokenPolicy.local_service(PolicyName.TASKS, AUDIENCE, email=EMAIL)
    told = Told()
    worker = WorkerRoute(
        TokenVerifier(policy, issuer.key_source()),
        told,  # type: ignore[arg-type]
        Signals(),
    )
    async with desk(tmp_path, worker=worker) as made, made.client(None) as client:
        yield Bench(client, told, issuer)


@pytest.mark.parametrize("kind", list(ResultKind))
async def test_each_result_has_one_answer(bench: Bench, kind: ResultKind) -> None:
    bench.told.result = Result(kind, FailureCode.PROVIDER_ERROR)
    answer = await bench.deliver()
    assert answer.status_code == STATUS[kind]
    assert answer.json() == {"status": kind, "code": "provider_error"}
    assert ("retry-after" in answer.headers) is (answer.status_code == 503)


async def test_the_delivery_carries_job_generation_and_verified_retry(bench: Bench) -> None:
    await bench.deliver(**{"X-CloudTasks-TaskRetryCount": "3"})
    assert bench.told.asked == [Delivery(JOB, 1, task_retry=3)]


async def test_a_customers_token_is_none_here(bench: Bench, tmp_path: Path) -> None:
    users = LocalIssuer.open(tmp_path.parent, "users")
    token = users.mint_user_token("ada", PROJECT)
    answer = await bench.deliver(b"{}", Authorization=f"Bearer {token}")
    assert answer.status_code == 401
    assert not bench.told.asked


@pytest.mark.parametrize("method", ["GET", "PUT", "HEAD", "DELETE"])
async def test_only_post_is_served(bench: Bench, method: str) -> None:
    assert (await bench.client.request(method, RUN)).status_code == 405


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"x" * 2_000,
        {"job_id": JOB},
        {"job_id": JOB, "dispatch_generation": True},
        {"job_id": JOB, "dispatch_generation": 1.0},
        {"job_id": JOB, "dispatch_generation": "1"},
        {"job_id": JOB, "dispatch_generation": 0},
        {"job_id": JOB, "dispatch_generation": 2**31},
        {"job_id": JOB.upper(), "dispatch_generation": 1},
        {"job_id": JOB + "\n", "dispatch_generation": 1},
        {"job_id": JOB, "dispatch_generation": 1, "transcript": CANARY},
        f'{{"job_id":"{JOB}","dispatch_generation":1,"dispatch_generation":1}}'.encode(),
    ],
)
async def test_a_body_that_is_not_exactly_a_task_touches_nothing(bench: Bench, body: Any) -> None:
    answer = await bench.deliver(body)
    assert answer.status_code == 400
    assert answer.json() == {"status": "refused", "code": "body_invalid"}
    assert not bench.told.asked


@given(st.binary(max_size=200))
def test_no_bytes_make_the_parser_raise_anything_else(body: bytes) -> None:
    with pytest.raises(BodyRefusedError):
        parse_task(body)


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ([], None),
        (["0"], 0),
        (["99"], 99),
        (["1", "1"], None),
        (["-1"], None),
        (["x"], None),
        (["1" * 10], None),
        (["٣"], None),
        ([" 1"], None),
    ],
)
def test_a_retry_count_is_believed_only_when_it_is_one(
    values: list[str], count: int | None
) -> None:
    assert retry_count(values) == count


def test_every_kind_of_result_is_answered() -> None:
    assert set(STATUS) == set(ResultKind)
