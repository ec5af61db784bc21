"""The worker route as a gate: what is refused leaves no trace, and the genuine task then works."""

from __future__ import annotations

from typing import Any

from listen_finalization.observe.signals import Event

from .cloud import Cloud, claims, cloud, signed
from .ground import Ground, traces

TASK_HEADERS = {
    "X-CloudTasks-QueueName": "conversation-finalization",
    "X-CloudTasks-TaskName": "task",
    "X-CloudTasks-TaskRetryCount": "99",
    "X-CloudTasks-TaskExecutionCount": "99",
    "X-CloudTasks-TaskETA": "1",
    "X-AppEngine-QueueName": "conversation-finalization",
    "X-Goog-Authenticated-User-Email": "accounts.google.com:tasks",
}


def bearer(**changes: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {signed(claims(**changes))}"}


async def refused(
    ground: Ground,
    headers: dict[str, str] | list[tuple[str, str]],
    status: int,
    reason: str | None = None,
    *,
    query: str = "",
) -> None:
    """A delivery with these headers is refused, changes nothing, and the genuine one works."""
    async with cloud(ground) as here:
        job = await here.admitted()
        before = await traces(ground)
        pairs = list(headers.items()) if isinstance(headers, dict) else headers
        answer = await here.request(job, [*TASK_HEADERS.items(), *pairs], query=query)
        told = answer.json()
        assert (answer.status_code, told["status"]) == (status, "refused"), told
        if reason is not None:
            assert told["code"] == reason
        assert await traces(ground) == before
        assert here.workshop.processor.count() == 0
        assert here.workshop.signals.count(Event.TOKEN_REFUSED, told["code"]) == 1
        await genuine(here, job)


async def passed(ground: Ground, headers: dict[str, str]) -> None:
    """A delivery with these headers runs the job."""
    async with cloud(ground) as here:
        job = await here.admitted()
        answer = await here.request(job, headers)
        assert (answer.status_code, answer.json()["status"]) == (200, "completed"), answer.text
        await here.checks()


async def genuine(here: Cloud, job: Any) -> None:
    assert await here.deliver(job) == (200, "completed", None)
    ended = await here.workshop.job(job)
    assert (ended.lease_epoch, ended.attempt_count, ended.dispatch_generation) == (1, 1, 1)
    assert ended.last_task_retry == 0
    await here.checks()
