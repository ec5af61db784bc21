"""wrk-conflict-eats-attempts: duplicates that meet a live lease must not bury a healthy job."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from listen_finalization.domain.commands import ClaimJob
from listen_finalization.testing.processor import FakeProcessor, hangs
from listen_finalization.testing.workshop import FakeLiveness

from .cloud import STALE, cloud


async def test_duplicates_change_nothing_and_the_long_run_is_accepted(tmp_path: Path) -> None:
    go = threading.Event()
    processor = FakeProcessor(enrich=hangs(go))
    async with cloud(tmp_path, processor) as here:
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
        here.checks()


async def test_after_a_kill_with_no_task_left_the_reconciler_recovers_the_job(
    tmp_path: Path,
) -> None:
    async with cloud(tmp_path) as here:
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
        here.checks()
