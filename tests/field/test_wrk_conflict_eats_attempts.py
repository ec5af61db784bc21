"""wrk-conflict-eats-attempts: duplicates that meet a live lease must not bury a healthy job."""

from __future__ import annotations

import asyncio
import threading

from listen_finalization.domain.commands import ClaimJob
from listen_finalization.testing.processor import FakeProcessor, Held, hangs
from listen_finalization.testing.workshop import FakeLiveness

from .cloud import STALE, cloud
from .ground import Ground
from .queue import EVERY_SECOND, Delivered, queued

DEADLINE = 1600


async def test_duplicates_change_nothing_and_the_long_run_is_accepted(ground: Ground) -> None:
    go = threading.Event()
    processor = FakeProcessor(enrich=hangs(go))
    async with cloud(ground, processor) as here:
        job = await here.admitted()
        running = asyncio.ensure_future(here.deliver(job))
        async with asyncio.timeout(5):
            while not processor.calls:  # noqa: ASYNC110 - the step is in a thread
                await asyncio.sleep(0.005)
        before = await here.workshop.job(job)
        for retry in range(5):
            assert await here.deliver(job, retry=retry) == (409, "busy", "lease_held")
        assert await here.workshop.job(job) == before
        go.set()
        assert await running == (200, "completed", None)
        assert (await here.workshop.job(job)).attempt_count == 1
        await here.checks()


async def test_after_a_kill_with_no_task_left_the_reconciler_recovers_the_job(
    ground: Ground,
) -> None:
    async with cloud(ground) as here:
        job = await here.admitted()
        killed = ClaimJob(job.job_id, 1, FakeLiveness().new_claim_id())
        await here.workshop.outbox.apply(killed)
        for retry in range(5):
            assert (await here.deliver(job, retry=retry))[0] == 409
        assert (await here.reconcile()).redispatched == 0
        here.clock.advance(61)
        assert (await here.reconcile()).redispatched == 1
        assert (await here.deliver(job, generation=1))[1:] == ("ignored", "stale_generation")
        assert await here.deliver(job) == (200, "completed", None)
        assert STALE > 61
        await here.checks()


async def test_a_real_queue_that_spends_its_attempts_on_a_long_run_buries_nothing(
    ground: Ground,
) -> None:
    held = Held()
    async with queued(
        ground, held.processor, deadline=DEADLINE, max_attempts=5, **EVERY_SECOND
    ) as home:
        job = await home.cloud.admitted()
        await held.begun()
        before = await home.cloud.workshop.job(job)
        home.pass_in_queue(DEADLINE)
        assert await home.spent() == [Delivered(str(retry), 409) for retry in range(1, 5)]
        assert await home.cloud.workshop.job(job) == before

        held.go.set()
        async with asyncio.timeout(10):
            while not (await home.cloud.workshop.job(job)).terminal:  # noqa: ASYNC110 - the step is in a thread
                await asyncio.sleep(0.005)
        ended = await home.cloud.workshop.job(job)
        assert (ended.outcome, ended.lease_epoch, ended.attempt_count) == ("success", 1, 1)
        await home.cloud.checks()
