"""rec-bumps-live-run: the reconciler goes by the lease, never by how long a run takes."""

from __future__ import annotations

import pytest

from listen_finalization.domain.commands import Checkpoint, ClaimJob, Complete
from listen_finalization.domain.decision import Decision, Refused
from listen_finalization.domain.job import Claim, seconds
from listen_finalization.domain.policy import Policy
from listen_finalization.testing.workshop import FakeLiveness

from .cloud import Cloud, cloud
from .ground import Ground

ROUND = 60
SLACK = 20
"""Seconds that pass beside the clock set by hand, where the store's time is that of a server."""


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
    lease: int, ground: Ground
) -> None:
    async with cloud(ground, policy=Policy(lease=seconds(lease))) as here:
        job = await here.admitted()
        handed = len(here.workshop.dispatcher.handed)
        claim = await begun(here, job.job_id)
        assert await passed(here, claim, 1_200, lease) == 0
        left = await here.workshop.job(job)
        assert (left.dispatch_generation, left.lease_epoch) == (1, 1)
        assert len(here.workshop.dispatcher.handed) == handed
        assert isinstance(await here.workshop.outbox.apply(Complete(claim)), Decision)
        await here.checks()


@pytest.mark.parametrize("lease", [60, 1_500])
async def test_after_a_kill_it_is_taken_up_within_the_lease_and_one_round_and_not_earlier(
    lease: int, ground: Ground
) -> None:
    async with cloud(ground, policy=Policy(lease=seconds(lease))) as here:
        job = await here.admitted()
        claim = await begun(here, job.job_id)
        await passed(here, claim, 600, lease)
        ends = (await here.workshop.job(job)).lease_expires_at or 0
        while not (await here.reconcile()).redispatched:
            here.clock.advance(ROUND)
        assert ends <= await here.now() <= ends + seconds(ROUND + SLACK)
        assert isinstance(await here.workshop.outbox.apply(Complete(claim)), Refused)
        assert await here.deliver(job) == (200, "completed", None)
        await here.checks()
