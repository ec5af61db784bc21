"""wrk-limit-drift: the queue's limit and the service's limit differ."""

from __future__ import annotations

from pathlib import Path

from listen_finalization.domain.policy import Policy
from listen_finalization.errors import StepFailedError
from listen_finalization.observe.signals import Event
from listen_finalization.testing.processor import FakeProcessor, fails

from .cloud import STALE, cloud


async def test_a_queue_that_gives_up_early_leaves_the_job_to_the_reconciler(
    tmp_path: Path,
) -> None:
    processor = FakeProcessor(enrich=fails(StepFailedError))
    async with cloud(tmp_path, processor) as here:
        job = await here.admitted()
        for retry in range(3):
            assert (await here.deliver(job, retry=retry))[0] == 500
        left = await here.workshop.job(job)
        assert (left.status, left.dispatch_generation, left.attempt_count) == ("queued", 1, 3)

        rounds = 0
        while not (await here.workshop.job(job)).terminal:
            here.clock.advance(10 * STALE)
            rounds += 1
            assert rounds < 4
            await here.reconcile()
            for retry in range(3):
                await here.deliver(job, retry=retry)
        ended = await here.workshop.job(job)
        assert (ended.status, ended.dispatch_generation, processor.count()) == ("dead_letter", 2, 5)
        here.checks()


async def test_a_queue_that_goes_on_is_acknowledged_and_nothing_runs_or_counts_twice(
    tmp_path: Path,
) -> None:
    processor = FakeProcessor(enrich=fails(StepFailedError))
    async with cloud(tmp_path, processor) as here:
        job = await here.admitted()
        told = [await here.deliver(job, retry=retry) for retry in range(10)]
        assert told[:4] == [(500, "failed", "provider_error")] * 4
        assert told[4] == (200, "dead_lettered", "provider_error")
        assert told[5:] == [(200, "ignored", "terminal")] * 5
        assert processor.count() == 5
        assert here.workshop.signals.count(Event.JOB_DEAD_LETTERED, "provider_error") == 1
        here.checks()


async def test_the_service_limit_holds_where_it_is_the_larger_one_too(tmp_path: Path) -> None:
    processor = FakeProcessor(enrich=fails(StepFailedError))
    async with cloud(tmp_path, processor, policy=Policy(max_attempts=2)) as here:
        job = await here.admitted()
        told = [(await here.deliver(job, retry=0))[1] for _ in range(3)]
        assert told == ["failed", "dead_lettered", "ignored"]
        here.checks()
