"""Production under every fault switch, kills and cut cables: nothing lost, nothing doubled."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from listen_finalization.domain.codes import Outcome, Status
from listen_finalization.testing.cloud_tasks import Code, Fault, FaultKind
from listen_finalization.testing.redis_server import RedisServer

from .cloud import ATTEMPTS, Cloud, Process
from .invariants import check_tables

LOST = 75
"""Seconds within which a job whose task is gone is run all the same: the least stale time, a round
of the reconciler, and a slow machine."""

FAULTS = (
    Fault(FaultKind.REFUSE, count=2),
    Fault(FaultKind.REFUSE, count=2, code=Code.PERMISSION_DENIED),
    Fault(FaultKind.REFUSE, count=2, code=Code.RESOURCE_EXHAUSTED),
    Fault(FaultKind.FORGET, count=2),
    Fault(FaultKind.UNCERTAIN, count=2),
    Fault(FaultKind.SILENT, count=1),
    Fault(FaultKind.TWICE, count=2),
    Fault(FaultKind.LATE, count=2, seconds=3),
    Fault(FaultKind.UNORDERED),
)


async def admitted(cloud: Cloud, api: Process, names: list[str]) -> None:
    for name in names:
        await cloud.talk(name)
        answer = await cloud.finalize(api, name)
        assert answer.status_code == 200, answer.text


async def settled(cloud: Cloud, count: int) -> None:
    """Assert that every job ended well, and every invariant of contract 17."""
    tables = await cloud.tables()
    check_tables(tables, max_attempts=ATTEMPTS, calls=cloud.calls())
    ends = [(job.status, job.outcome) for job in await cloud.jobs()]
    assert ends == [(Status.COMPLETED, Outcome.SUCCESS)] * count
    assert len(tables.memories) == count
    assert "Traceback" not in cloud.stderr.read_text("utf-8")


@pytest.mark.timeout(180)
async def test_every_fault_of_the_queue_is_made_good(
    cloud_of: Callable[..., Cloud], redis_server: RedisServer
) -> None:
    async with cloud_of(redis=redis_server.url, delay=0.02) as cloud:
        api, worker = await cloud.start("api"), await cloud.start("worker")
        for number, fault in enumerate(FAULTS):
            cloud.tasks.faults.set(fault)
            await admitted(cloud, api, [f"c{number}-{n}" for n in range(3)])
            cloud.tasks.faults.clear(fault.kind)
        await cloud.until(3 * len(FAULTS), LOST)
        await settled(cloud, 3 * len(FAULTS))
        assert set(cloud.tasks.faults.hits) == {fault.kind for fault in FAULTS}
        assert [await api.end(), await worker.end()] == [0, 0]


async def kills(cloud: Cloud, *, jobs: int, rounds: int) -> None:
    """Kill a role at a random moment, the worker mostly, and start it again."""
    chance = random.Random(20261201)
    roles = {"api": await cloud.start("api"), "worker": await cloud.start("worker")}
    names = [f"c{n}" for n in range(jobs)]
    await admitted(cloud, roles["api"], names)
    for number in range(rounds):
        role = "api" if number % 3 == 2 else "worker"
        await asyncio.sleep(chance.uniform(0.2, 1.5))
        await roles[role].kill()
        roles[role] = await cloud.start(role)
    await cloud.until(jobs, LOST)


@pytest.mark.timeout(180)
async def test_killed_roles_lose_no_job_and_pay_no_step_that_is_stored(
    cloud_of: Callable[..., Cloud], redis_server: RedisServer
) -> None:
    async with cloud_of(redis=redis_server.url, delay=0.3) as cloud:
        await kills(cloud, jobs=16, rounds=4)
        await settled(cloud, 16)


async def cuts(cloud: Cloud, *, jobs: int, rounds: int) -> None:
    """Cut every connection to the database at a random moment, for a moment or for seconds."""
    chance = random.Random(20261202)
    api = await cloud.start("api")
    await cloud.start("worker")
    names = [f"c{n}" for n in range(jobs)]
    await admitted(cloud, api, names[: jobs // 2])
    for number in range(rounds):
        await asyncio.sleep(chance.uniform(0.2, 1.0))
        cloud.cable.cut()
        await asyncio.sleep(chance.choice((0.0, 0.3, 2.5)) if number else 2.5)
        if number == 0:
            refused = await cloud.finalize(api, names[0])
            assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
        cloud.cable.mend()
    await admitted_again(cloud, api, names[jobs // 2 :])
    await cloud.until(jobs, LOST)


async def admitted_again(cloud: Cloud, api: Process, names: list[str]) -> None:
    """Ask as a client does: again while the answer is 503."""
    for name in names:
        await cloud.talk(name)
        async with asyncio.timeout(30):
            while (answer := await cloud.finalize(api, name)).status_code == 503:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        assert answer.status_code == 200, answer.text


@pytest.mark.timeout(180)
async def test_cut_cables_to_the_database_lose_nothing(
    cloud_of: Callable[..., Cloud], redis_server: RedisServer
) -> None:
    async with cloud_of(redis=redis_server.url, delay=0.1) as cloud:
        await cuts(cloud, jobs=20, rounds=4)
        await settled(cloud, 20)


@pytest.mark.full
@pytest.mark.timeout(900)
async def test_many_kills_and_cuts_at_once_lose_nothing(
    cloud_of: Callable[..., Cloud], redis_server: RedisServer
) -> None:
    chance = random.Random(20261203)
    async with cloud_of(redis=redis_server.url, delay=0.2) as cloud:
        roles = {"api": await cloud.start("api"), "worker": await cloud.start("worker")}
        for fault in FAULTS[3:]:
            cloud.tasks.faults.set(Fault(fault.kind, share=0.1, seconds=fault.seconds))
        for number in range(20):
            await admitted_again(cloud, roles["api"], [f"c{number}-{n}" for n in range(10)])
            await asyncio.sleep(chance.uniform(0.2, 2.0))
            if number % 2:
                role = chance.choice(("api", "worker"))
                await roles[role].kill()
                roles[role] = await cloud.start(role)
            else:
                cloud.cable.cut()
                await asyncio.sleep(chance.uniform(0.0, 3.0))
                cloud.cable.mend()
            if number % 5 == 4:
                redis_server.end()
                redis_server.start()
        await cloud.until(200, 300)
        await settled(cloud, 200)
        runs = len({(call.job_id, call.claim) for call in cloud.calls()})
        print(f"\n200 jobs, 10 kills, 10 cuts, 4 Redis restarts: {runs} runs, all completed")
