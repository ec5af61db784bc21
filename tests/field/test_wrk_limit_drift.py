"""wrk-limit-drift: the queue's limit and the service's limit differ."""

from __future__ import annotations

from listen_finalization.domain.policy import Policy
from listen_finalization.errors import StepFailedError
from listen_finalization.observe.signals import Event
from listen_finalization.testing.processor import FakeProcessor, fails

from .cloud import STALE, cloud
from .ground import Ground
from .queue import EVERY_SECOND, Delivered, queued


async def test_a_queue_that_gives_up_early_leaves_the_job_to_the_reconciler(
    ground: Ground,
) -> None:
    processor = FakeProcessor(enrich=fails(StepFailedError))
    async with cloud(ground, processor) as here:
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
        await here.checks()


async def test_a_queue_that_goes_on_is_acknowledged_and_nothing_runs_or_counts_twice(
    ground: Ground,
) -> None:
    processor = FakeProcessor(enrich=fails(StepFailedError))
    async with cloud(ground, processor) as here:
        job = await here.admitted()
        told = [await here.deliver(job, retry=retry) for retry in range(10)]
        assert told[:4] == [(500, "failed", "provider_error")] * 4
        assert told[4] == (200, "dead_lettered", "provider_error")
        assert told[5:] == [(200, "ignored", "terminal")] * 5
        assert processor.count() == 5
        assert here.workshop.signals.count(Event.JOB_DEAD_LETTERED, "provider_error") == 1
        await here.checks()


async def test_the_service_limit_holds_where_it_is_the_larger_one_too(ground: Ground) -> None:
    processor = FakeProcessor(enrich=fails(StepFailedError))
    async with cloud(ground, processor, policy=Policy(max_attempts=2)) as here:
        job = await here.admitted()
        told = [(await here.deliver(job, retry=0))[1] for _ in range(3)]
        assert told == ["failed", "dead_lettered", "ignored"]
        await here.checks()


async def test_a_real_queue_of_three_attempts_leaves_the_job_to_the_reconciler(
    ground: Ground,
) -> None:
    processor = FakeProcessor(enrich=fails(StepFailedError))
    async with queued(ground, processor, max_attempts=3, **EVERY_SECOND) as home:
        job = await home.cloud.admitted()
        assert await home.spent() == [Delivered(str(retry), 500) for retry in range(3)]
        left = await home.cloud.workshop.job(job)
        assert (left.status, left.dispatch_generation, left.attempt_count) == ("queued", 1, 3)

        home.cloud.clock.advance(10 * STALE)
        assert (await home.cloud.reconcile()).redispatched == 1
        home.cloud.clock.advance(10 * STALE)
        assert (await home.spent())[3:] == [Delivered("0", 500), Delivered("1", 200)]
        ended = await home.cloud.workshop.job(job)
        assert (ended.status, ended.dispatch_generation, processor.count()) == ("dead_letter", 2, 5)
        await home.cloud.checks()


async def test_a_real_queue_of_ten_attempts_ends_with_the_service_limit(ground: Ground) -> None:
    processor = FakeProcessor(enrich=fails(StepFailedError))
    async with queued(ground, processor, max_attempts=10, **EVERY_SECOND) as home:
        job = await home.cloud.admitted()
        told = [Delivered(str(retry), 500) for retry in range(4)]
        assert await home.spent() == [*told, Delivered("4", 200)]
        assert (await home.cloud.workshop.job(job)).status == "dead_letter"
        assert processor.count() == 5
        await home.cloud.checks()
