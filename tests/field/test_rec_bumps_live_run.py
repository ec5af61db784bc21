"""rec-bumps-live-run: the reconciler goes by the lease, never by how long a run takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from listen_finalization.domain.commands import Checkpoint, ClaimJob, Complete
from listen_finalization.domain.decision import Decision, Refused
from listen_finalization.domain.job import Claim, seconds
from listen_finalization.domain.policy import Policy
from listen_finalization.testing.workshop import FakeLiveness

from .cloud import Cloud, cloud

ROUND = 60


async def begun(here: Cloud, job_id: str) -> Claim:
    command = ClaimJob(job_id, 1, FakeLiveness().new_claim_id())
    answer = await here.workshop.outbox.apply(command)
    assert isinstance(answer, Decision) and answer.job is not None
    return answer.job.claim


async def passed(here: Cloud, claim: Claim, total: int, lease: int) -> int:
    """Let time pass with a renewal at every third of the lease and a round each minute."""
    redispatched = 0
    for second in range(20, total + 1, 20):
        here.clock.advance(20)
        if second % max(lease // 3 // 20 * 20, 20) == 0:
            await here.workshop.outbox.apply(Checkpoint(claim))
        if second % ROUND == 0:
            redispatched += (await here.reconcile()).redispatched
    return redispatched


@pytest.mark.parametrize("lease", [60, 1_500])
async def test_a_run_of_twenty_minutes_is_let_alone_and_its_result_is_accepted(
    lease: int, tmp_path: Path
) -> None:
    async with cloud(tmp_path, policy=Policy(lease=seconds(lease))) as here:
        job = await here.admitted()
        handed = len(here.workshop.dispatcher.handed)
        claim = await begun(here, job.job_id)
        assert await passed(here, claim, 1_200, lease) == 0
        left = await here.workshop.job(job)
        assert (left.dispatch_generation, left.lease_epoch) == (1, 1)
        assert len(here.workshop.dispatcher.handed) == handed
        assert isinstance(await here.workshop.outbox.apply(Complete(claim)), Decision)
        here.checks()


@pytest.mark.parametrize("lease", [60, 1_500])
async def test_after_a_kill_it_is_taken_up_within_the_lease_and_one_round_and_not_earlier(
    lease: int, tmp_path: Path
) -> None:
    async with cloud(tmp_path, policy=Policy(lease=seconds(lease))) as here:
        job = await here.admitted()
        claim = await begun(here, job.job_id)
        await passed(here, claim, 600, lease)
        ends = (await here.workshop.job(job)).lease_expires_at or 0
        while not (await here.reconcile()).redispatched:
            here.clock.advance(ROUND)
        assert ends <= here.clock() <= ends + seconds(ROUND)
        assert isinstance(await here.workshop.outbox.apply(Complete(claim)), Refused)
        assert await here.deliver(job) == (200, "completed", None)
        here.checks()
