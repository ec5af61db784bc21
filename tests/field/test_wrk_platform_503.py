"""wrk-platform-503: answers that the platform gave in our place raise the retry count.

Documented: a first real attempt that fails at the queue's last retry is final, as nobody would
deliver the task again. The row says how often it was really tried, and a replay works.
"""

from __future__ import annotations

from pathlib import Path

from listen_finalization.domain.commands import Replay
from listen_finalization.domain.decision import Decision
from listen_finalization.errors import EnvironmentFaultError, StepFailedError
from listen_finalization.testing.processor import FakeProcessor, fails, in_turn, record

from .cloud import cloud


async def test_a_first_real_attempt_at_the_last_retry_may_succeed(tmp_path: Path) -> None:
    async with cloud(tmp_path) as here:
        job = await here.admitted()
        assert await here.deliver(job, retry=4) == (200, "completed", None)
        ended = await here.workshop.job(job)
        assert (ended.attempt_count, ended.last_task_retry) == (1, 4)
        here.checks()


async def test_its_failure_is_final_and_tells_one_claim_from_five_deliveries(
    tmp_path: Path,
) -> None:
    processor = FakeProcessor(enrich=in_turn(fails(StepFailedError), record))
    async with cloud(tmp_path, processor) as here:
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
        here.checks()

        answer = await here.workshop.outbox.apply(
            Replay(job.job_id, dead.dispatch_generation, "c" * 32)
        )
        assert isinstance(answer, Decision)
        assert await here.deliver(job, retry=0) == (200, "completed", None)
        assert (await here.status())["status"] == "completed"
        here.checks()


async def test_an_environment_fault_at_the_last_retry_is_not_final(tmp_path: Path) -> None:
    processor = FakeProcessor(enrich=in_turn(fails(EnvironmentFaultError), record))
    async with cloud(tmp_path, processor) as here:
        job = await here.admitted()
        assert (await here.deliver(job, retry=4))[:2] == (200, "deferred")
        left = await here.workshop.job(job)
        assert (left.dispatch_generation, left.last_task_retry, left.attempt_count) == (2, None, 0)
        assert await here.deliver(job) == (200, "completed", None)
        here.checks()
