"""The doctor in front of the Cloud Tasks server that users have: real queues, no accounts."""

from __future__ import annotations

from datetime import timedelta

from google.cloud import tasks_v2

from listen_finalization.dispatch.cloud_tasks import open_client
from listen_finalization.operate.findings import Code, Verdict
from listen_finalization.testing.cloud_tasks import CloudTasksServer

from .live_project import PLACE, LiveProject

QUEUE = f"{PLACE}/queues/conversation-finalization"
CODES = (
    Code.QUEUE_FOUND,
    Code.QUEUE_RUNNING,
    Code.QUEUE_ATTEMPTS,
    Code.QUEUE_BACKOFF,
    Code.QUEUE_CONCURRENCY,
    Code.QUEUE_RATE,
)


def queue(**retry: object) -> tasks_v2.Queue:
    given: dict[str, object] = {
        "max_attempts": 5,
        "min_backoff": timedelta(seconds=10),
        "max_backoff": timedelta(seconds=600),
        "max_doublings": 6,
        **retry,
    }
    return tasks_v2.Queue(
        name=QUEUE,
        rate_limits=tasks_v2.RateLimits(max_concurrent_dispatches=4, max_dispatches_per_second=500),
        retry_config=tasks_v2.RetryConfig(**given),
    )


async def verdicts(live: LiveProject, *queues: tasks_v2.Queue) -> dict[Code, Verdict]:
    """Return what is said of queues that the real client made in the server."""
    async with CloudTasksServer() as server:
        client = await open_client(server.address)
        for one in queues:
            await client.create_queue(parent=PLACE, queue=one)
        await client.transport.close()  # type: ignore[no-untyped-call]
        live.env["CLOUD_TASKS_EMULATOR_HOST"] = server.address
        found = await live.examined()
    assert found[Code.QUEUE_ENQUEUERS].found == "not looked at: the server does not offer it"
    return {code: one.verdict for code, one in found.items() if code in CODES}


async def test_a_queue_as_the_files_say_is_well(live: LiveProject) -> None:
    assert await verdicts(live, queue()) == dict.fromkeys(CODES, Verdict.OK)


async def test_a_queue_of_other_attempts_is_a_failure(live: LiveProject) -> None:
    expected = dict.fromkeys(CODES, Verdict.OK) | {Code.QUEUE_ATTEMPTS: Verdict.FAILURE}
    assert await verdicts(live, queue(max_attempts=3)) == expected


async def test_a_missing_queue_is_one_failure(live: LiveProject) -> None:
    assert await verdicts(live) == {Code.QUEUE_FOUND: Verdict.FAILURE}
