"""A worker of the cloud kind, and the test in the place of the queue, of Google and of time."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key

from integration.invariants import Marks, check_tables
from listen_finalization.auth.issuer import LocalIssuer
from listen_finalization.auth.policy import PolicyName, TokenPolicy
from listen_finalization.auth.sources import StaticKeySource
from listen_finalization.auth.verifier import TokenVerifier
from listen_finalization.domain.job import Instant, Job
from listen_finalization.domain.policy import Policy
from listen_finalization.http.app import CustomerServices, Services, build_app
from listen_finalization.http.tasks import WorkerRoute
from listen_finalization.reconcile import Reconciler, Recovery, Round
from listen_finalization.settings import RUN_PATH
from listen_finalization.testing.clock import FakeClock
from listen_finalization.testing.processor import FakeProcessor
from listen_finalization.testing.workshop import UID, Workshop

from .ground import Ground

AUDIENCE = f"https://finalizer.example.com{RUN_PATH}"
INVOKER = "tasks-invoker@omi-prod.iam.gserviceaccount.com"
PROJECT = "omi-prod"
KID = "google-key-1"
STALE = 300


@cache
def google_key() -> RSAPrivateKey:
    return generate_private_key(public_exponent=65537, key_size=2048)


@cache
def users() -> LocalIssuer:
    """The issuer of customers' tokens."""
    return LocalIssuer(generate_private_key(public_exponent=65537, key_size=2048))


def claims(**changes: Any) -> dict[str, Any]:
    """Return the claims of a good token; a claim that is changed to `...` is left out."""
    now = int(time.time())
    good: dict[str, Any] = {
        "iss": "https://accounts.google.com",
        "aud": AUDIENCE,
        "sub": "1234567890",
        "email": INVOKER,
        "email_verified": True,
        "iat": now,
        "exp": now + 3600,
    }
    return {name: value for name, value in {**good, **changes}.items() if value is not ...}


def signed(told: dict[str, Any], *, kid: str = KID) -> str:
    payload = json.dumps(told).encode()
    return jwt.PyJWS().encode(payload, google_key(), "RS256", {"kid": kid})


class Cloud:
    """The application in cloud mode over one store; deliveries are made by hand."""

    def __init__(self, workshop: Workshop, ground: Ground, clock: FakeClock) -> None:
        self.workshop = workshop
        self.ground = ground
        self.clock = clock
        self.marks = Marks()
        self.statuses: Counter[int] = Counter()
        self.told: list[str] = []
        self.fetches: list[str] = []
        self.app = build_app(self._services())
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url="https://finalizer.example.com"
        )

    def _services(self) -> Services:
        customers = TokenPolicy.local_users(PROJECT)
        google = TokenPolicy.google(PolicyName.TASKS, AUDIENCE, email=INVOKER)
        keys = StaticKeySource({KID: google_key().public_key()})
        workshop = self.workshop
        return Services(
            signals=workshop.signals,
            customers=CustomerServices(
                verifier=TokenVerifier(customers, users().key_source()),
                admission=workshop.admission,
                outbox=workshop.outbox,
                max_attempts=workshop.policy.max_attempts,
                durable=True,
            ),
            worker=WorkerRoute(TokenVerifier(google, keys), workshop.finalizer, workshop.signals),
        )

    def user(self, uid: str = UID) -> str:
        return users().mint_user_token(uid, PROJECT)

    async def finalize(self, key: str = "c1") -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.user()}"}
        return await self.http.post(f"/v1/conversations/{key}/finalize", headers=headers)

    async def status(self, key: str = "c1") -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.user()}"}
        answer = await self.http.get(f"/v1/conversations/{key}/finalization", headers=headers)
        told: dict[str, Any] = answer.json()
        return told

    async def admitted(self, key: str = "c1", *, subscribers: int = 0) -> Job:
        """Speak and finalize over the customer route; return the job."""
        await self.workshop.spoken(key)
        for number in range(subscribers):
            url = f"https://receiver-{number}.example/"
            await self.workshop.destinations.add(UID, f"d{number}", url)
        answer = await self.finalize(key)
        assert answer.status_code == 200, answer.text
        found = await self.workshop.outbox.get(answer.json()["job_id"])
        assert found is not None
        return found

    async def deliver(
        self, job: Job, *, retry: int = 0, generation: int | None = None
    ) -> tuple[int, str, str | None]:
        """Deliver a task; return the answer's number, word and code."""
        present = await self.workshop.job(job)
        answer = await self.request(
            job,
            {
                "Authorization": f"Bearer {signed(claims())}",
                "X-CloudTasks-TaskRetryCount": str(retry),
            },
            generation=generation or present.dispatch_generation,
        )
        told = answer.json()
        return answer.status_code, told["status"], told["code"]

    async def request(
        self,
        job: Job,
        headers: dict[str, str] | list[tuple[str, str]],
        *,
        generation: int = 1,
        query: str = "",
    ) -> httpx.Response:
        """Send a delivery with any headers."""
        body = {"job_id": job.job_id, "dispatch_generation": generation}
        answer = await self.http.post(RUN_PATH + query, json=body, headers=headers)
        self.statuses[answer.status_code] += 1
        self.told.append(answer.text)
        await self.look()
        return answer

    async def reconcile(self) -> Round:
        reconciler = Reconciler(
            self.workshop.outbox,
            self.workshop.store.records,
            self.workshop.dispatcher,
            self.workshop.signals,
            recovery=Recovery.HAND_OVER,
            stale=STALE,
            monotonic=self.clock.monotonic,
        )
        done = await reconciler.run_once(force=True)
        await self.look()
        return done

    async def now(self) -> Instant:
        """Return the store's own time."""
        return (await self.workshop.outbox.due(1)).now

    async def look(self) -> None:
        self.marks.see(await self.ground.jobs())

    async def checks(self, *, settled: bool = True) -> None:
        """Check what holds after every case."""
        tables = await self.ground.tables()
        self.marks.see(tables.jobs)
        calls, limit = self.workshop.processor.calls, self.workshop.policy.max_attempts
        check_tables(tables, max_attempts=limit, calls=calls, settled=settled)
        assert not [text for text in self.told if "We ship" in text]


@asynccontextmanager
async def cloud(
    ground: Ground,
    processor: FakeProcessor | None = None,
    *,
    policy: Policy | None = None,
    **options: Any,
) -> AsyncIterator[Cloud]:
    """Open a worker, with a store and a clock of its own, on what others may have begun."""
    clock, policy = FakeClock(), policy or Policy()
    async with (
        ground.store(policy, clock) as store,
        Workshop(ground.directory, processor, store=store, policy=policy, **options) as workshop,
    ):
        made = Cloud(workshop, ground, clock)
        try:
            yield made
        finally:
            await made.http.aclose()
