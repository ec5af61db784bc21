"""wrk-platform-503: answers that the platform gave in our place raise the retry count.

Documented: a first real attempt that fails at the queue's last retry is final, as nobody would
deliver the task again. The row says how often it was really tried, and a replay works.
"""

from __future__ import annotations

import pytest

from listen_finalization.domain.commands import Replay
from listen_finalization.domain.decision import Decision
from listen_finalization.errors import EnvironmentFaultError, StepFailedError
from listen_finalization.testing.processor import Act, FakeProcessor, fails, in_turn, record

from .cloud import cloud
from .ground import Ground
from .queue import EVERY_SECOND, Delivered, queued

FAILS = fails(StepFailedError)


async def test_a_first_real_attempt_at_the_last_retry_may_succeed(ground: Ground) -> None:
    async with cloud(ground) as here:
        job = await here.admitted()
        assert await here.deliver(job, retry=4) == (200, "completed", None)
        ended = await here.workshop.job(job)
        assert (ended.attempt_count, ended.last_task_retry) == (1, 4)
        await here.checks()


async def test_its_failure_is_final_and_tells_one_claim_from_five_deliveries(
    ground: Ground,
) -> None:
    processor = FakeProcessor(enrich=in_turn(fails(StepFailedError), record))
    async with cloud(ground, processor) as here:
        job = await here.admitted()
        assert (await here.deliver(job, retry=4))[1] == "dead_lettered"
        dead = await here.workshop.job(job)
        assert (dead.attempt_count, dead.last_task_retry) == (1, 4)
        told = await here.status()
        assert (told["status"], told["attempt_count"], told["max_attempts"]) == (
            "dead_letter",
            1,
            5,
        )
        await here.checks()

        answer = await here.workshop.outbox.apply(
            Replay(job.job_id, dead.dispatch_generation, "c" * 32)
        )
        assert isinstance(answer, Decision)
        assert await here.deliver(job, retry=0) == (200, "completed", None)
        assert (await here.status())["status"] == "completed"
        await here.checks()


async def test_an_environment_fault_at_the_last_retry_is_not_final(ground: Ground) -> None:
    processor = FakeProcessor(enrich=in_turn(fails(EnvironmentFaultError), record))
    async with cloud(ground, processor) as here:
        job = await here.admitted()
        assert (await here.deliver(job, retry=4))[:2] == (200, "deferred")
        left = await here.workshop.job(job)
        assert (left.dispatch_generation, left.last_task_retry, left.attempt_count) == (2, None, 0)
        assert await here.deliver(job) == (200, "completed", None)
        await here.checks()


@pytest.mark.parametrize(("act", "status"), [(record, "completed"), (FAILS, "dead_letter")])
async def test_a_real_queue_counts_what_the_platform_turned_away(
    act: Act, status: str, ground: Ground
) -> None:
    processor = FakeProcessor(enrich=act)
    async with queued(ground, processor, turned_away=4, max_attempts=5, **EVERY_SECOND) as home:
        job = await home.cloud.admitted()
        told = [Delivered(str(retry), 503) for retry in range(4)]
        assert await home.spent() == [*told, Delivered("4", 200)]
        ended = await home.cloud.workshop.job(job)
        assert (ended.status, ended.attempt_count, ended.last_task_retry) == (status, 1, 4)
        await home.cloud.checks()
