"""dsp-name-tombstone: a name that is refused proves nothing, and is not asked for again.

Over the real queue and each store. A process for each role: tests/integration/test_cloud_faults.py.
"""

from __future__ import annotations

import asyncio
import datetime as dt

from listen_finalization.dispatch.cloud_tasks import TaskOutcome
from listen_finalization.domain.job import Job, seconds
from listen_finalization.observe.signals import Event
from listen_finalization.testing.cloud_tasks import Code, Fault, FaultKind
from listen_finalization.testing.processor import FakeProcessor

from .cloud import STALE
from .ground import Ground
from .queue import Delivered, Queued, queued

SLACK = 60
"""Seconds that may pass beside the clock set by hand, where the store's time is a server's."""


def exists(home: Queued) -> int:
    """Return how often a name was asked for that was taken."""
    return home.cloud.workshop.signals.count(Event.TASK_NOT_CREATED, TaskOutcome.EXISTS)


def failures(home: Queued) -> int:
    return home.cloud.workshop.signals.count(Event.ENQUEUE_FAILED)


async def recovered(home: Queued, job: Job) -> None:
    """The reconciler's next generation has a name of its own, and it completes the job."""
    before = exists(home)
    home.cloud.clock.advance(STALE - SLACK)
    assert (await home.cloud.reconcile()).redispatched == 0
    home.cloud.clock.advance(SLACK)
    assert (await home.cloud.reconcile()).redispatched == 1
    assert await home.answered(1) == [Delivered("0", 200)]
    ended = await home.cloud.workshop.job(job)
    assert (ended.status, ended.outcome) == ("completed", "success")
    assert (ended.dispatch_generation, ended.attempt_count) == (2, 1)
    assert exists(home) == before, "the reserved name was asked for again"
    await home.cloud.checks()


async def test_a_name_that_stays_reserved_after_its_task_ended_is_left_behind(
    ground: Ground,
) -> None:
    processor, reachable = FakeProcessor(), asyncio.Event()
    a_second = dt.timedelta(seconds=1)
    async with queued(
        ground,
        processor,
        reachable=reachable,
        max_attempts=2,
        min_backoff=a_second,
        max_backoff=a_second,
    ) as home:
        job = await home.cloud.admitted()
        while (await home.names()) == [f"{job.job_id}-1"]:
            home.pass_in_queue(1)
        assert (await home.names(), processor.count()) == ([], 0)

        due = job.reconcile_after_at
        answer = await home.cloud.finalize()

        assert answer.status_code == 200
        assert (exists(home), failures(home), await home.names()) == (1, 0, [])
        left = await home.cloud.workshop.job(job)
        assert (left.status, left.dispatch_generation) == ("queued", 1)
        assert left.reconcile_after_at == due
        reachable.set()
        await recovered(home, job)


async def test_a_name_that_is_refused_at_once_with_no_task_behind_it_loses_no_job(
    ground: Ground,
) -> None:
    async with queued(ground, FakeProcessor()) as home:
        refused = Fault(FaultKind.REFUSE, count=1, code=Code.ALREADY_EXISTS)
        home.server.faults.set(refused)

        job = await home.cloud.admitted()

        assert (exists(home), failures(home), await home.names()) == (1, 0, [])
        assert (job.status, job.dispatch_generation) == ("queued", 1)
        assert job.reconcile_after_at == job.created_at + seconds(STALE)
        await recovered(home, job)


async def test_a_task_that_the_queue_forgot_is_made_good_in_the_same_way(ground: Ground) -> None:
    async with queued(ground, FakeProcessor()) as home:
        home.server.faults.set(Fault(FaultKind.FORGET, count=1))
        job = await home.cloud.admitted()
        assert (exists(home), failures(home), await home.names()) == (0, 0, [])
        await recovered(home, job)
