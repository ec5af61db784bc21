"""lse-late-clobber: the loser's late writes leave no trace on what the winner did."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from listen_finalization.domain.codes import (
    EffectState,
    FailureCode,
    RefusalCode,
    ReleaseCause,
    Step,
)
from listen_finalization.domain.commands import (
    Checkpoint,
    ClaimJob,
    Complete,
    Fail,
    OwnedCommand,
    Release,
    StepResult,
)
from listen_finalization.domain.content import Memory
from listen_finalization.domain.decision import Decision, Refused
from listen_finalization.domain.job import Claim, Effect

from .cloud import Cloud, cloud
from .ground import Ground, traces

SENT = Effect(Step.FANOUT, EffectState.SENT, "d0")
LATE: dict[str, Callable[[Claim], OwnedCommand]] = {
    "renewal": Checkpoint,
    "effects": lambda claim: Checkpoint(
        claim, effects=(SENT,), results=(StepResult(Step.ENRICH, "{}"),), memories=(Memory("m"),)
    ),
    "retry": lambda claim: Fail(claim, FailureCode.PROVIDER_ERROR),
    "dead letter": lambda claim: Fail(claim, FailureCode.PROVIDER_ERROR, task_retry=99),
    "completion": Complete,
    "discard": lambda claim: Complete(claim, discard=True),
    "release": lambda claim: Release(claim, ReleaseCause.SHUTDOWN, FailureCode.SHUTDOWN),
    "environment": lambda claim: Release(
        claim, ReleaseCause.ENVIRONMENT, FailureCode.ENVIRONMENT_PROVIDER
    ),
}


async def claimed(here: Cloud, job_id: str, generation: int, name: str) -> Claim:
    answer = await here.workshop.outbox.apply(ClaimJob(job_id, generation, name * 32))
    assert isinstance(answer, Decision) and answer.job is not None
    return answer.job.claim


async def won(here: Cloud, claim: Claim, state: str) -> None:
    """Bring B's row to the state that A's late write meets."""
    if state == "completed":
        await here.workshop.outbox.apply(Complete(claim))
    if state == "dead letter":
        await here.workshop.outbox.apply(Fail(claim, FailureCode.PROVIDER_ERROR, task_retry=99))
    if state == "queued again":
        await here.workshop.outbox.apply(Fail(claim, FailureCode.PROVIDER_ERROR))


@pytest.mark.parametrize("state", ["running", "completed", "dead letter", "queued again"])
@pytest.mark.parametrize("way", ["expiry", "new generation"])
async def test_every_late_write_is_refused_and_leaves_no_trace(
    state: str, way: str, ground: Ground
) -> None:
    async with cloud(ground) as here:
        job = await here.admitted()
        a = await claimed(here, job.job_id, 1, "a")
        here.clock.advance(61)
        generation = 1
        if way == "new generation":
            assert (await here.reconcile()).redispatched == 1
            generation = 2
        b = await claimed(here, job.job_id, generation, "b")
        await won(here, b, state)
        here.clock.advance(1)
        before = await traces(ground)
        signals = dict(here.workshop.signals.counts)
        for late in LATE.values():
            answer = await here.workshop.outbox.apply(late(a))
            assert isinstance(answer, Refused)
            assert answer.code is RefusalCode.OWNERSHIP_LOST
            assert await traces(ground) == before
        assert dict(here.workshop.signals.counts) == signals
        if state == "running":
            assert isinstance(await here.workshop.outbox.apply(Complete(b)), Decision)
        await here.checks(settled=state != "queued again")
