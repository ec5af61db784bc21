"""The reconciler's trigger: the scheduler's token and nothing else starts a round."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from desk import CANARY, PROJECT, desk

from listen_finalization.auth.issuer import LocalIssuer
from listen_finalization.auth.policy import PolicyName, TokenPolicy
from listen_finalization.auth.sources import KeySource, NoKey
from listen_finalization.auth.verifier import TokenVerifier
from listen_finalization.errors import StoreBusyError, StoreError
from listen_finalization.http.rounds import RoundRoute
from listen_finalization.observe.signals import Event, Signals

RECONCILE = "/v1/conversation-finalization-jobs/reconcile"
AUDIENCE = "https://worker.example/v1/conversation-finalization-jobs/run"
SCHEDULER = "scheduler@example.com"


class Away:
    """A key server that nobody reaches."""

    async def key(self, kid: str, /) -> RSAPublicKey | NoKey:
        return NoKey.UNAVAILABLE


class Bench:
    def __init__(self, issuer: LocalIssuer, keys: KeySource) -> None:
        self.issuer = issuer
        self.signals = Signals()
        self.rounds = 0
        self.fault: StoreError | None = None
        policy = TokenPolicy.local_service(PolicyName.SCHEDULER, AUDIENCE, email=SCHEDULER)
        self.route = RoundRoute(TokenVerifier(policy, keys), self.start, self.signals)
        self.client: httpx.AsyncClient

    async def start(self) -> Mapping[str, int]:
        self.rounds += 1
        if self.fault is not None:
            raise self.fault
        return {"seen": 3, "redispatched": 2}

    async def post(self, token: str | None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return await self.client.post(RECONCILE, headers=headers, content=CANARY)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    issuer = LocalIssuer.open(tmp_path.parent, "tasks")
    made = Bench(issuer, issuer.key_source())
    async with desk(tmp_path, rounds=made.route) as here, here.client(None) as made.client:
        yield made


async def test_the_scheduler_starts_a_round_and_is_told_its_counts(bench: Bench) -> None:
    answer = await bench.post(bench.issuer.mint_task_token(AUDIENCE, SCHEDULER))
    assert answer.status_code == 200
    assert answer.json() == {"status": "done", "round": {"seen": 3, "redispatched": 2}}
    assert bench.rounds == 1


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ((AUDIENCE, "invoker@example.com"), 403),
        (("https://worker.example", SCHEDULER), 401),
        (None, 401),
    ],
)
async def test_nobody_else_starts_one(bench: Bench, claims: Any, status: int) -> None:
    token = bench.issuer.mint_task_token(*claims) if claims else None
    answer = await bench.post(token)
    assert answer.status_code == status
    assert answer.json()["status"] == "refused"
    assert bench.rounds == 0
    assert sum(bench.signals.counts.values()) == 1


async def test_a_customers_token_is_none_here(bench: Bench, tmp_path: Path) -> None:
    users = LocalIssuer.open(tmp_path.parent, "users")
    assert (await bench.post(users.mint_user_token("ada", PROJECT))).status_code == 401
    assert bench.rounds == 0


async def test_without_any_key_the_scheduler_is_asked_to_come_again(tmp_path: Path) -> None:
    made = Bench(LocalIssuer.open(tmp_path.parent, "tasks"), Away())
    async with desk(tmp_path, rounds=made.route) as here, here.client(None) as made.client:
        answer = await made.post(made.issuer.mint_task_token(AUDIENCE, SCHEDULER))
    assert answer.status_code == 503
    assert made.rounds == 0


async def test_a_store_in_trouble_is_a_503_and_is_told_of(bench: Bench) -> None:
    bench.fault = StoreBusyError()
    answer = await bench.post(bench.issuer.mint_task_token(AUDIENCE, SCHEDULER))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "60")
    assert answer.json() == {"status": "unavailable", "code": None}
    assert bench.signals.count(Event.ROUND_FAILED) == 1


@pytest.mark.parametrize("method", ["GET", "PUT", "HEAD", "DELETE"])
async def test_only_post_is_served(bench: Bench, method: str) -> None:
    assert (await bench.client.request(method, RECONCILE)).status_code == 405


async def test_the_route_is_in_no_public_document(bench: Bench) -> None:
    assert "jobs/reconcile" not in (await bench.client.get("/openapi.json")).text
