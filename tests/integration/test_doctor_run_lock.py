"""The doctor's look at the run lock's Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import httpx
import pytest

from listen_finalization.operate.deployed import Deployed
from listen_finalization.operate.facts import LockFacts
from listen_finalization.operate.google import Endpoints, Google, default_account
from listen_finalization.operate.probes.around import look_at_run_lock
from listen_finalization.operate.probes.reach import Reach
from listen_finalization.settings import Settings
from listen_finalization.testing.redis_server import RedisServer

PASSWORD = "canary-redis-8812"


@pytest.fixture
def guarded(redis_installed: None, tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path, requirepass=PASSWORD) as server:
        yield server


async def looked(url: str) -> object:
    async with httpx.AsyncClient() as client:
        google = Google(client, default_account, Endpoints())
        settings = Settings(run_lock_url=url)
        return await look_at_run_lock(Reach(cast(Deployed, None), settings, client, google, 20))


async def test_a_server_that_answers_is_well(guarded: RedisServer) -> None:
    url = guarded.url.replace("redis://", f"redis://:{PASSWORD}@")
    assert await looked(url) == LockFacts(answered=True)


async def test_a_refused_password_is_a_code(guarded: RedisServer) -> None:
    url = guarded.url.replace("redis://", "redis://:wrong@")
    assert await looked(url) == LockFacts(answered=False, trouble="refused")


async def test_a_frozen_server_holds_a_look_up_no_longer_than_it_is_given(
    guarded: RedisServer,
) -> None:
    guarded.freeze()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await looked(guarded.url)
    guarded.thaw()
