"""No call to Firestore, Cloud Tasks or Redis ever blocks the event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable

import pytest
import redis
from google.cloud import firestore

from listen_finalization.domain.codes import Outcome, Status
from listen_finalization.testing.processor import FakeProcessor
from listen_finalization.testing.redis_server import RedisServer

from .blocking import BlockingCalls
from .cloud import Cloud
from .in_process import served

pytestmark = pytest.mark.xdist_group("firestore")


async def test_a_whole_job_blocks_no_event_loop(
    cloud_of: Callable[..., Cloud], redis_server: RedisServer
) -> None:
    """Admission, hand-over, run lock, claim, checkpoints, settlement, rounds and polls."""
    processor = FakeProcessor(delay=1.2)  # longer than a third of the lease: it is renewed
    async with cloud_of(redis=redis_server.url) as cloud:
        with BlockingCalls() as blocking:
            async with served(cloud, processor) as stack:
                await cloud.talk("c1")
                assert (await cloud.finalize(cloud.worker_url, "c1")).status_code == 200
                await cloud.until(1, 30)
                told = await cloud.status(cloud.worker_url, "c1")
                assert told.json()["status"] == "completed"
                await stack.store.outbox.counts()
                await stack.store.outbox.oldest()
        [job] = await cloud.jobs()
    assert (job.status, job.outcome, job.attempt_count) == (Status.COMPLETED, Outcome.SUCCESS, 1)
    assert processor.count() == 2
    with redis.Redis.from_url(redis_server.url) as client:
        assert client.info("commandstats")["cmdstat_eval"]["calls"] == 2  # taken, given back
    assert blocking.seen == []


def _lock_is_waited_for() -> None:
    threading.Event().wait(0.001)


def _future_is_waited_for() -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(time.sleep, 0.01).result()


def _sleep() -> None:
    time.sleep(0.001)


@pytest.mark.parametrize("block", [_sleep, _lock_is_waited_for, _future_is_waited_for])
async def test_a_wait_on_the_loop_is_noticed(block: Callable[[], None]) -> None:
    with BlockingCalls() as blocking:
        block()
    assert blocking.seen


async def test_the_same_wait_in_a_thread_is_nobodys_trouble() -> None:
    with BlockingCalls() as blocking:
        await asyncio.to_thread(_sleep)
    assert blocking.seen == []


async def test_the_blocking_client_of_firestore_is_noticed(
    firestore_host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_host)
    client = firestore.Client(project="p-blocking")
    with BlockingCalls() as blocking:
        client.document("a", "b").get()
        client.document("a", "b").set({"c": 1})
    client.close()  # type: ignore[no-untyped-call]
    told = [one.partition("\n")[0] for one in blocking.seen]
    assert {"_UnaryStreamMultiCallable.__call__", "_UnaryUnaryMultiCallable._blocking"} <= set(told)


async def test_the_blocking_client_of_redis_is_noticed(
    redis_server: RedisServer,
) -> None:
    with redis.Redis.from_url(redis_server.url) as client, BlockingCalls() as blocking:
        client.ping()
    told = {one.partition("\n")[0] for one in blocking.seen}
    assert {"socket.connect", "socket.sendall", "socket.recv"} <= told
