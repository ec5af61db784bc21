"""The application over a real store, asked through ASGI by users with signed tokens."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from listen_finalization.admission import Admission
from listen_finalization.auth.issuer import LocalIssuer
from listen_finalization.auth.policy import TokenPolicy
from listen_finalization.auth.verifier import TokenVerifier
from listen_finalization.domain.content import Segment
from listen_finalization.domain.job import Job
from listen_finalization.domain.policy import Policy
from listen_finalization.http.app import CustomerServices, Services, build_app
from listen_finalization.observe.signals import Signals
from listen_finalization.outbox.sqlite import SqliteStore

PROJECT = "desk-project"
CANARY = "canary-7f3a9c"
POLICY = Policy(handover=0, retry_floor=0)


@cache
def issuer(directory: Path) -> LocalIssuer:
    return LocalIssuer.open(directory, "users")


class Noted:
    """A dispatcher that takes every hand-over, or none."""

    def __init__(self, takes: bool = True) -> None:
        self.takes = takes
        self.jobs: list[Job] = []

    async def hand_over(self, job: Job, *, delay: int = 0) -> bool:
        self.jobs.append(job)
        return self.takes


class Desk:
    """Everything a test of the routes touches."""

    def __init__(self, tmp_path: Path, **changes: Any) -> None:
        self.store = SqliteStore(tmp_path / "listen.db", POLICY)
        self.outbox = self.store.outbox
        self.conversations = self.store.conversations
        self.signals = Signals()
        self.dispatcher = Noted()
        self.issuer = issuer(tmp_path.parent)
        routes = changes.pop("routes", ())
        mine = {f.name for f in fields(CustomerServices)} & changes.keys()
        customers = replace(self._customers(), **{name: changes.pop(name) for name in mine})
        self.services = Services(self.signals, customers, **changes)
        self.app: FastAPI = build_app(self.services)
        self.app.router.routes.extend(routes)

    def _customers(self) -> CustomerServices:
        return CustomerServices(
            verifier=TokenVerifier(TokenPolicy.local_users(PROJECT), self.issuer.key_source()),
            admission=Admission(self.outbox, self.dispatcher, self.signals),
            outbox=self.outbox,
            max_attempts=5,
            durable=True,
            embedded=self.conversations,
        )

    def token(self, uid: str = "ada") -> dict[str, str]:
        return {"Authorization": f"Bearer {self.issuer.mint_user_token(uid, PROJECT)}"}

    async def spoken(self, key: str = "c1", uid: str = "ada", *, byok: bool = False) -> None:
        """Store one segment that says the canary."""
        said = Segment("s1", "Ada", 0.0, 2.0, f"We ship {CANARY} on Friday.")
        await self.conversations.append(uid, key, [said], byok=byok)

    @asynccontextmanager
    async def client(self, uid: str | None = "ada") -> AsyncIterator[httpx.AsyncClient]:
        headers = self.token(uid) if uid else {}
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(
            transport=transport, base_url="https://desk.example", headers=headers
        ) as client:
            yield client


@asynccontextmanager
async def desk(tmp_path: Path, **changes: Any) -> AsyncIterator[Desk]:
    made = Desk(tmp_path, **changes)
    try:
        yield made
    finally:
        made.store.close()


def says(response: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    """Check that a response is the problem `kind`, and return its document."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "no-store"
    told: dict[str, Any] = response.json()
    assert told["type"] == f"/problems/{kind}"
    assert told["status"] == status
    assert CANARY not in response.text + str(response.headers)
    return told


def logged(records: list[logging.LogRecord]) -> str:
    """Return everything that was logged, tracebacks included."""
    formatter = logging.Formatter("%(name)s %(message)s")
    return "\n".join(map(formatter.format, records))
