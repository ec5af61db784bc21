"""adm-crash-after-commit: the process dies between commit and hand-over; repeats are answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from listen_finalization.domain.job import Job
from listen_finalization.testing.clock import FakeClock
from listen_finalization.testing.workshop import Workshop

from .checks import all_checks
from .cloud import STALE, cloud
from .ground import FileGround, Ground
from .house import house


class Killed(BaseException):
    """Stands for SIGKILL: nothing of the process runs after it."""


class DiesAtHandOver:
    async def hand_over(self, job: Job, *, delay: int = 0) -> bool:
        raise Killed


@pytest.mark.parametrize("helper", ["repeat", "reconciler"])
async def test_both_repeats_name_the_same_job_which_runs_once(helper: str, ground: Ground) -> None:
    async with cloud(ground) as here:
        await here.workshop.spoken()
        admission = here.workshop.admission
        living, admission._dispatcher = admission._dispatcher, DiesAtHandOver()
        with pytest.raises(Killed):
            await here.finalize()
        admission._dispatcher = living
        held = await here.workshop.conversation()
        job = await here.workshop.outbox.get(held.job_id or "")
        assert job is not None and job.reconcile_after_at is not None
        handed = here.workshop.dispatcher.handed
        assert handed == []

        if helper == "repeat":
            first = await here.finalize()
            assert (first.status_code, first.json()["job_id"]) == (200, job.job_id)
            assert [(j.job_id, j.dispatch_generation) for j, _ in handed] == [(job.job_id, 1)]
        here.clock.advance(STALE + 1)
        await here.reconcile()
        assert handed[-1][0].job_id == job.job_id
        second = await here.finalize()
        assert (second.status_code, second.json()["job_id"]) == (200, job.job_id)

        told = [await here.deliver(j, generation=j.dispatch_generation) for j, _ in handed]
        assert told[-1][1] in ("completed", "ignored")
        ended = await here.workshop.job(job)
        assert (ended.outcome, ended.finalization_revision, ended.lease_epoch) == ("success", 1, 1)
        assert here.workshop.processor.count() == 2
        await here.checks()


async def test_the_embedded_mode_needs_neither_repeat_nor_reconciler(
    file_ground: FileGround,
) -> None:
    """A committed row is the hand-over: the next process of the directory runs it."""
    async with house(file_ground, running=False) as first:
        await first.spoken("c1")
        async with first.client() as client:
            answer = await client.post("/v1/conversations/c1/finalize")
        job_id = answer.json()["job_id"]
    async with house(file_ground) as second:
        await second.settled()
        async with second.client() as client:
            again = await client.post("/v1/conversations/c1/finalize")
            assert (again.status_code, again.json()["job_id"]) == (200, job_id)
        ended = await second.job_of("c1")
        assert (ended.outcome, ended.lease_epoch, ended.dispatch_generation) == ("success", 1, 1)
        await all_checks(second)


async def test_a_commit_whose_answer_was_lost_is_the_same_job_at_the_repeat(
    tmp_path: Path,
) -> None:
    async with Workshop(tmp_path, clock=FakeClock()) as workshop:
        first = await workshop.admitted()
        assert await workshop.admitted() == first
