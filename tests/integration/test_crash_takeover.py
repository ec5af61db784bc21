"""A killed process's jobs are taken over because it is proved dead, long before its lease ends."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from listen_finalization.testing.processor import count

from .invariants import Marks, check
from .plant import Plant

LEASE = 300
"""Seconds; a takeover that waited for it would fail every deadline below."""
WELL_BEFORE = 30.0


def proved(plant: Plant) -> None:
    path = plant.directory / "listen.db"
    check(path, max_attempts=5, calls=plant.calls())
    assert "Traceback" not in plant.stderr.read_text("utf-8")


@pytest.mark.timeout(90)
async def test_a_restart_takes_up_the_killed_process_jobs_at_once(tmp_path: Path) -> None:
    async with Plant(tmp_path, delay=0.5, lease_seconds=LEASE) as plant:
        node = await plant.start()
        job = await plant.admit("c1")
        held = await plant.leased(job.job_id)
        await node.kill()
        assert (await plant.job(job.job_id)).claim_id == held.claim_id

        node = await plant.start()
        await plant.leased_again(job.job_id, after=1)
        waited = time.monotonic() - node.started
        await plant.until(1, WELL_BEFORE)

        print(f"\nclaimed again {waited:.2f} s after the restart, lease {LEASE} s")
        ended = await plant.job(job.job_id)
        assert (ended.status, ended.lease_epoch, ended.attempt_count) == ("completed", 2, 2)
        proved(plant)


@pytest.mark.timeout(90)
async def test_the_other_process_takes_over_when_the_leader_is_killed(tmp_path: Path) -> None:
    async with Plant(tmp_path, delay=0.5, lease_seconds=LEASE) as plant:
        leader = await plant.start()
        await plant.start()
        job = await plant.admit("c1")
        await plant.leased(job.job_id)
        await plant.admit("c2")

        await leader.kill()
        fell = time.monotonic()
        await plant.leased_again(job.job_id, after=1)
        waited = time.monotonic() - fell
        await plant.until(2, WELL_BEFORE)

        print(f"\nclaimed by the other process {waited:.2f} s after the kill, lease {LEASE} s")
        assert (await plant.job(job.job_id)).lease_epoch == 2
        proved(plant)


@pytest.mark.timeout(90)
async def test_a_killed_follower_disturbs_no_run(tmp_path: Path) -> None:
    async with Plant(tmp_path, delay=0.5, lease_seconds=LEASE) as plant:
        await plant.start()
        follower = await plant.start()
        job = await plant.admit("c1")
        await plant.leased(job.job_id)
        await follower.kill()
        await plant.until(1, WELL_BEFORE)

        ended = await plant.job(job.job_id)
        assert (ended.status, ended.lease_epoch) == ("completed", 1)
        assert count(plant.calls()) == 2
        proved(plant)


@pytest.mark.timeout(120)
async def test_one_process_in_a_crash_loop_costs_the_other_nothing(tmp_path: Path) -> None:
    async with Plant(tmp_path, delay=0.1, lease_seconds=LEASE) as plant:
        await plant.start()
        marks = Marks()
        jobs = 30
        for number in range(jobs):
            await plant.admit(f"c{number}")
        for _ in range(2):
            other = await plant.start()
            await other.kill()
            marks.look(plant.directory / "listen.db")
        await plant.until(jobs, WELL_BEFORE)

        assert count(plant.calls()) == 2 * jobs
        assert {job.lease_epoch for job in await plant.jobs()} == {1}
        proved(plant)


@pytest.mark.timeout(60)
async def test_a_terminated_process_gives_its_jobs_back_uncounted(tmp_path: Path) -> None:
    async with Plant(tmp_path, delay=20, lease_seconds=LEASE, shutdown_grace_seconds=0.2) as plant:
        node = await plant.start()
        job = await plant.admit("c1")
        await plant.leased(job.job_id)
        assert await node.end() == 0

        left = await plant.job(job.job_id)
        assert (left.status, left.attempt_count, left.releases) == ("queued", 0, 1)
        assert left.failure_code == "shutdown"
        assert left.reconcile_after_at is not None
        assert left.reconcile_after_at <= plant.store.now()
