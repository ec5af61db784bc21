"""The doctor's read of Firestore, on the emulator."""

from __future__ import annotations

import secrets
from pathlib import Path

import httpx
import pytest

from listen_finalization.operate.deployed import Deployed
from listen_finalization.operate.facts import Blind, ServerTime, Unseen
from listen_finalization.operate.google import Endpoints, Google, default_account
from listen_finalization.operate.probes.reach import Reach
from listen_finalization.operate.probes.store import look_at_store
from listen_finalization.operate.schema import Retention
from listen_finalization.settings import Settings


def deployed() -> Deployed:
    return Deployed(
        directory=str(Path("deploy")),
        environment="production",
        project=f"p-{secrets.token_hex(8)}",
        location="here",
        mode="inline",
        users_project="people",
        queue=None,
        budgets={},
        database="(default)",
        accounts={},
        services={},
        run_lock=False,
        indexes=frozenset(),
        fields={},
        retention=Retention("jobs", "completed_at", "1s"),
    )


async def looked() -> object:
    async with httpx.AsyncClient() as client:
        google = Google(client, default_account, Endpoints())
        return await look_at_store(Reach(deployed(), Settings(), client, google, 20))


async def test_a_store_that_answers_tells_its_clock(
    firestore_host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_host)
    found = await looked()
    assert isinstance(found, ServerTime)
    assert found.offset == pytest.approx(0, abs=1)


async def test_a_store_that_nobody_answers_for_is_unreachable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", "127.0.0.1:1")
    assert await looked() == Unseen(Blind.UNREACHABLE)
