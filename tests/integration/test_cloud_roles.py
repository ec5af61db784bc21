"""A whole job over Firestore, Cloud Tasks, Google's tokens and Redis: a process for each role."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from listen_finalization.domain.codes import FailureCode, Outcome, Status
from listen_finalization.testing.redis_server import RedisServer

from .cloud import ATTEMPTS, Cloud
from .invariants import check_tables


@pytest.mark.timeout(120)
async def test_a_conversation_is_finalized_by_an_api_and_a_worker_in_processes_of_their_own(
    cloud_of: Callable[..., Cloud], redis_server: RedisServer
) -> None:
    async with cloud_of(redis=redis_server.url) as cloud:
        api, worker = await cloud.start("api"), await cloud.start("worker")
        assert (await cloud.status(api, "c1")).status_code == 404
        await cloud.talk("c1")

        answer = await cloud.finalize(api, "c1")

        assert answer.status_code == 200
        assert answer.json()["conversation"]["status"] == "processing"
        await cloud.until(1, 30)
        [job] = await cloud.jobs()
        assert (job.status, job.outcome) == (Status.COMPLETED, Outcome.SUCCESS)
        assert (job.attempt_count, job.dispatch_generation) == (1, 1)
        told = (await cloud.status(api, "c1")).json()
        assert (told["status"], told["terminal"]) == ("completed", True)
        record = await cloud.store.conversations.find("ada", "c1")
        assert record is not None
        assert record.structured is not None
        assert record.structured["overview"] == "We ship c1 soon."
        assert [memory.text for memory in record.memories] == ["We ship c1 soon."]
        check_tables(await cloud.tables(), max_attempts=ATTEMPTS, calls=cloud.calls())
        assert [await api.end(), await worker.end()] == [0, 0]
        assert "Traceback" not in cloud.stderr.read_text("utf-8")


@pytest.mark.timeout(120)
async def test_a_worker_that_is_told_to_stop_answers_its_delivery_and_gives_the_attempt_back(
    cloud_of: Callable[..., Cloud],
) -> None:
    grace = {"LISTEN_FINALIZATION_SHUTDOWN_GRACE_SECONDS": "1"}
    async with cloud_of(delay=30, **grace) as cloud:
        api, worker = await cloud.start("api"), await cloud.start("worker")
        await cloud.talk("c1")
        await cloud.finalize(api, "c1")
        async with asyncio.timeout(20):
            while not cloud.calls():  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.05)
        [job] = await cloud.jobs()
        assert job.status is Status.LEASED

        assert await worker.end() == 0

        [job] = await cloud.jobs()
        assert (job.status, job.attempt_count, job.releases) == (Status.QUEUED, 0, 1)
        assert job.failure_code is FailureCode.SHUTDOWN
        # The delivery was told: what was cut off instead would be logged as a fault by the server.
        assert "CancelledError" not in cloud.stderr.read_text("utf-8")
