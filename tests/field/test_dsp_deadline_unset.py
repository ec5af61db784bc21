"""dsp-deadline-unset: the deadline is on the task, and a delivery past it runs nothing twice.

Over the real queue and each store; the queue's clock alone passes the deadline, because
the run renews its lease by the clock of its own machine. A worker that is another process, and
Cloud Run's own time limit, belong to `tests/integration` and the deploy files.
"""

from __future__ import annotations

import datetime as dt

from listen_finalization.domain.budgets import MAX_DISPATCH_DEADLINE
from listen_finalization.settings import BY_FIELD
from listen_finalization.testing.processor import Held

from .ground import Ground
from .queue import QUEUE, Delivered, queued

DEADLINE = 1600


async def test_a_run_that_outlives_the_deadline_is_delivered_again_and_executes_once(
    ground: Ground,
) -> None:
    held = Held()
    a_second = dt.timedelta(seconds=1)
    async with queued(
        ground, held.processor, deadline=DEADLINE, min_backoff=a_second, max_backoff=a_second
    ) as home:
        job = await home.cloud.admitted(subscribers=2)
        await held.begun()
        task = await home.client.get_task(name=f"{QUEUE}/tasks/{job.job_id}-1")
        assert task.dispatch_deadline == dt.timedelta(seconds=DEADLINE)

        home.pass_in_queue(DEADLINE)
        while (await home.client.get_task(name=task.name)).last_attempt.response_status.code != 4:
            pass
        home.pass_in_queue(1)
        assert await home.answered(1) == [Delivered("1", 409)]
        during = await home.cloud.workshop.job(job)
        assert (during.status, during.lease_epoch, during.attempt_count) == ("leased", 1, 1)

        held.go.set()
        while not (await home.cloud.workshop.job(job)).terminal:
            pass
        while await home.names():
            home.pass_in_queue(1)
        assert home.answers[-1].status == 200
        assert {one.status for one in home.answers} == {409, 200}
        ended = await home.cloud.workshop.job(job)
        assert (ended.status, ended.lease_epoch, ended.attempt_count) == ("completed", 1, 1)
        assert held.processor.count("enrich") == held.processor.count("memories") == 1
        sender = home.cloud.workshop.sender
        assert [sender.count(f"d{number}") for number in range(2)] == [1, 1]
        await home.cloud.checks()


def test_the_configured_deadline_is_never_more_than_cloud_tasks_allows() -> None:
    setting = BY_FIELD["tasks_dispatch_deadline_seconds"]
    assert (setting.low, setting.high, setting.default) == (15, MAX_DISPATCH_DEADLINE, "1800")
