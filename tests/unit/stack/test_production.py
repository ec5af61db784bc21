"""The roles of production: what each serves, what each needs, and what its rounds do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from listen_finalization.dispatch.cloud_tasks import CloudTasksDispatcher
from listen_finalization.dispatch.inline import InlineDispatcher
from listen_finalization.domain.budgets import DispatchMode
from listen_finalization.errors import SettingsError
from listen_finalization.reconcile import Recovery
from listen_finalization.settings import RECONCILE_PATH, RUN_PATH, Settings
from listen_finalization.stack.production import Production, Role

FINALIZE = "/v1/conversations/c1/finalize"
PREFIX = "LISTEN_FINALIZATION_"
URL = f"https://worker.example.com{RUN_PATH}"
IDENTITY = {
    f"{PREFIX}TASKS_OIDC_AUDIENCE": URL,
    f"{PREFIX}TASKS_INVOKER_SA": "invoker@omi-prod.iam.gserviceaccount.com",
    f"{PREFIX}SCHEDULER_SA": "scheduler@omi-prod.iam.gserviceaccount.com",
}
BASE = {
    f"{PREFIX}FIREBASE_PROJECT": "omi-prod",
    f"{PREFIX}FIRESTORE_PROJECT": "omi-prod",
    "CLOUD_TASKS_EMULATOR_HOST": "127.0.0.1:1",
}
INLINE = {**BASE, f"{PREFIX}DISPATCH_MODE": "inline"}
QUEUED = {
    **BASE,
    **IDENTITY,
    f"{PREFIX}DISPATCH_MODE": "cloud_tasks",
    f"{PREFIX}TASKS_QUEUE": "conversation-finalization",
    f"{PREFIX}TASKS_HANDLER_URL": URL,
    "SYNC_TASKS_PROJECT": "omi-prod",
    "SYNC_TASKS_LOCATION": "us-central1",
}


@pytest.fixture(autouse=True)
def nobody_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here may reach a database; without credentials none is looked for."""
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", "127.0.0.1:1")


def settings(env: dict[str, str], **without: None) -> Settings:
    return Settings.from_environment({k: v for k, v in env.items() if k not in without})


@asynccontextmanager
async def opened(env: dict[str, str], role: Role) -> AsyncIterator[Production]:
    made = await Production.open(settings(env), role)
    try:
        yield made
    finally:
        await made.__aexit__(None, None, None)


@pytest.mark.parametrize(
    ("role", "finalize", "run", "reconcile"),
    [
        (Role.API, 401, 404, 401),
        (Role.WORKER, 404, 401, 401),
        (Role.LIVE, 404, 404, 404),
        (Role.ALL, 401, 401, 401),
    ],
)
async def test_each_role_serves_its_own_routes_and_its_health(
    role: Role, finalize: int, run: int, reconcile: int
) -> None:
    async with opened(QUEUED, role) as made:
        transport = httpx.ASGITransport(made.app)
        async with httpx.AsyncClient(transport=transport, base_url="https://x.example") as client:
            found = [(await client.post(path)).status_code for path in (FINALIZE, RUN_PATH)]
            assert [*found, (await client.post(RECONCILE_PATH)).status_code] == [
                finalize,
                run,
                reconcile,
            ]
            assert (await client.get("/livez")).status_code == 200
            ready = await client.get("/readyz")
            document = (await client.get("/openapi.json")).text
    assert ready.status_code == 503
    parts = ready.json()["parts"]
    assert parts["store"] == {"ok": False, "reason": parts["store"]["reason"]}
    assert ("slots" in parts) is (role is not Role.API)
    assert "conversation-finalization-jobs" not in document


async def test_the_task_route_answers_in_every_mode_in_which_its_identity_is_configured() -> None:
    async with opened({**INLINE, **IDENTITY}, Role.ALL) as made:
        transport = httpx.ASGITransport(made.app)
        async with httpx.AsyncClient(transport=transport, base_url="https://x.example") as client:
            assert (await client.post(RUN_PATH)).status_code == 401
    async with opened(INLINE, Role.ALL) as made:
        transport = httpx.ASGITransport(made.app)
        async with httpx.AsyncClient(transport=transport, base_url="https://x.example") as client:
            assert (await client.post(RUN_PATH)).status_code == 404
            assert (await client.post(RECONCILE_PATH)).status_code == 404


@pytest.mark.parametrize(
    ("mode", "recoveries"),
    [
        (DispatchMode.INLINE, [Recovery.LEAVE, Recovery.LEAVE, Recovery.RUN, Recovery.RUN]),
        (
            DispatchMode.CLOUD_TASKS,
            [Recovery.HAND_OVER, Recovery.HAND_OVER, None, Recovery.HAND_OVER],
        ),
    ],
)
def test_who_recovers_a_due_job_and_how_is_the_modes_and_the_roles(
    mode: DispatchMode, recoveries: list[Recovery | None]
) -> None:
    assert [role.recovery(mode) for role in Role] == recoveries


async def test_the_mode_says_what_a_job_is_handed_over_to() -> None:
    async with opened(QUEUED, Role.API) as queued, opened(INLINE, Role.API) as inline:
        assert isinstance(queued._queue.dispatcher, CloudTasksDispatcher)
        assert isinstance(inline._queue.dispatcher, InlineDispatcher)


@pytest.mark.parametrize(
    ("role", "missing"),
    [
        (Role.API, f"{PREFIX}FIREBASE_PROJECT"),
        (Role.ALL, f"{PREFIX}FIREBASE_PROJECT"),
        (Role.LIVE, f"{PREFIX}FIRESTORE_PROJECT"),
    ],
)
async def test_a_role_names_the_setting_that_it_misses(role: Role, missing: str) -> None:
    env = {name: value for name, value in INLINE.items() if name != missing}
    with pytest.raises(SettingsError) as caught:
        await Production.open(settings(env), role)
    assert str(caught.value) == f"the role {role} needs {missing}"


async def test_a_worker_without_an_identity_would_serve_nobody() -> None:
    with pytest.raises(SettingsError) as caught:
        await Production.open(settings(INLINE), Role.WORKER)
    names = f"{PREFIX}TASKS_OIDC_AUDIENCE and {PREFIX}TASKS_INVOKER_SA"
    assert str(caught.value) == f"the role worker needs {names}"


async def test_the_embedded_mode_has_a_stack_of_its_own() -> None:
    embedded = Settings.from_environment({f"{PREFIX}DISPATCH_MODE": "embedded"})
    with pytest.raises(SettingsError, match="`listen-finalization up`"):
        await Production.open(embedded, Role.ALL)


async def test_a_store_that_is_away_ends_neither_the_start_nor_the_rounds() -> None:
    made = await Production.open(settings(QUEUED), Role.WORKER)
    async with asyncio.timeout(20):
        async with made:
            await asyncio.sleep(0)
    assert made.broken is False
