"""Processes that are killed at random moments lose no job and double no effect."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from listen_finalization.testing.processor import count

from .invariants import Marks, check, delivered_all
from .plant import Plant
from .receivers import Receiver, receivers

USERS = ("ada", "grace", "alan")
ATTEMPTS = 15
"""More than kills: here a crash must cost an attempt and nothing else."""


async def subscribed(plant: Plant, made: list[Receiver]) -> None:
    """Give the first user every receiver, and each further one a receiver less."""
    for dropped, uid in enumerate(USERS):
        for number, one in enumerate(made[dropped:]):
            await plant.destinations.add(uid, f"hook-{number}", one.url(f"/{uid}/{number}"))


async def crash_loop(directory: Path, *, jobs: int, kills: int) -> None:
    chance = random.Random(20261130)
    recoveries: list[float] = []
    marks = Marks()
    with receivers(3) as made:
        async with Plant(directory, tasks_max_attempts=ATTEMPTS) as plant:
            await subscribed(plant, made)
            begun = time.monotonic()
            node = await plant.start()
            for number in range(jobs):
                await plant.admit(f"c{number}", uid=USERS[number % len(USERS)])
            for _ in range(kills):
                await asyncio.sleep(chance.uniform(0.2, 1.6 * jobs / 60 / max(kills / 4, 1)))
                await node.kill()
                marks.look(plant.directory / "listen.db")
                done = await plant.terminal()
                node = await plant.start()
                if done < jobs:
                    await plant.until(done + 1, 14)
                    recoveries.append(time.monotonic() - node.started)
            await plant.until(jobs, 90)
            took = time.monotonic() - begun
            assert await node.end() == 0
            marks.look(plant.directory / "listen.db")
            told(plant, made, jobs=jobs, kills=kills, took=took, recoveries=recoveries)
            proved(plant, made, jobs=jobs, kills=kills)


def told(
    plant: Plant,
    made: list[Receiver],
    *,
    jobs: int,
    kills: int,
    took: float,
    recoveries: list[float],
) -> None:
    received = [one for receiver in made for one in receiver.received]
    repeated = sum(n - 1 for n in Counter(one.delivery_id for one in received).values())
    calls = plant.calls()
    claims = len({(call.job_id, call.claim) for call in calls})
    waits = ", ".join(f"{wait:.2f}" for wait in recoveries)
    print(
        f"\njobs {jobs}, kills {kills}, {took:.1f} s; runs {claims}, provider calls"
        f" {count(calls)} (ideal {2 * jobs}); deliveries {len(received)}, repeated under the"
        f" same key {repeated}; first completion after each restart: {waits} s"
    )


def proved(plant: Plant, made: list[Receiver], *, jobs: int, kills: int) -> None:
    path = plant.directory / "listen.db"
    received = [one for receiver in made for one in receiver.received]
    calls = plant.calls()
    check(path, max_attempts=ATTEMPTS, calls=calls, received=received)
    delivered_all(path, received)
    slots = 4
    assert 2 * jobs <= count(calls) <= 2 * jobs + kills * slots
    wanted = sum(3 - number % len(USERS) for number in range(jobs))
    assert len({one.delivery_id for one in received}) == wanted
    assert len(received) <= wanted + kills * slots * 3
    assert "Traceback" not in plant.stderr.read_text("utf-8")


@pytest.mark.timeout(90)
async def test_kills_at_random_moments_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    await crash_loop(tmp_path, jobs=60, kills=4)


@pytest.mark.full
@pytest.mark.timeout(400)
async def test_ten_kills_in_three_hundred_jobs_lose_nothing(tmp_path: Path) -> None:
    await crash_loop(tmp_path, jobs=300, kills=10)
