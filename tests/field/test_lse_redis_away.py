"""lse-redis-away: a lock server that is missing, down, deaf or emptied never decides who runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from redis import Redis

from listen_finalization.errors import StepFailedError
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.ports import Liveness, Outbox
from listen_finalization.runlock.lock import LeaseRunLock
from listen_finalization.runlock.opening import open_run_lock
from listen_finalization.runlock.redis import PREFIX
from listen_finalization.testing.processor import FakeProcessor, Held, fails, in_turn, record
from listen_finalization.testing.redis_server import RedisServer, free_port

from .cloud import STALE, Cloud, cloud
from .ground import Ground
from .house import house

TTL = 1800.0
HELD = (409, "busy", "lease_held")
DONE = (200, "completed", None)


@asynccontextmanager
async def worker(
    ground: Ground, url: str | None, processor: FakeProcessor | None = None
) -> AsyncIterator[Cloud]:
    """Open a worker as the settings would: with the lock server at `url`, or without one."""
    opened: list[LeaseRunLock] = []

    def run_lock(outbox: Outbox, liveness: Liveness, signals: Signals) -> Any:
        lock = open_run_lock(url, outbox, liveness, signals, ttl=TTL)
        opened.extend([lock] if lock is not None else [])
        return lock

    async with cloud(ground, processor, run_lock=run_lock) as here:
        yield here
    for lock in opened:
        await lock.close()


def away(here: Cloud) -> int:
    counts = here.workshop.signals.counts.items()
    return sum(count for (event, _), count in counts if event is Event.RUN_LOCK_AWAY)


async def two_deliveries(
    ground: Ground, url: str | None, between: Callable[[], object] = lambda: None
) -> tuple[int, int]:
    """Deliver one job to two workers at once; return how often each went on without its lock.

    `between` happens while the first runs and before the second comes.
    """
    held = Held()
    async with AsyncExitStack() as both:
        first = await both.enter_async_context(worker(ground, url, held.processor))
        second = await both.enter_async_context(worker(ground, url))
        job = await first.admitted()
        running = asyncio.ensure_future(first.deliver(job))
        await held.begun()
        await asyncio.to_thread(between)
        assert await second.deliver(job) == HELD
        held.go.set()
        assert await running == DONE
        assert second.workshop.processor.calls == []
        ended = await first.workshop.job(job)
        assert (ended.outcome, ended.lease_epoch, ended.attempt_count) == ("success", 1, 1)
        assert first.statuses + second.statuses == {200: 1, 409: 1}
        await first.checks()
        return away(first), away(second)


async def test_a_without_a_lock_server_the_lease_alone_decides(ground: Ground) -> None:
    assert await two_deliveries(ground, None) == (0, 0)


async def test_a_a_missing_lock_server_is_announced_at_the_start(
    ground: Ground, redis_server: RedisServer
) -> None:
    async with house(ground, running=False) as bare:
        assert bare.signals.count(Event.RUN_LOCK_UNSET) == 1
    async with house(ground, running=False, run_lock_url=redis_server.url) as locked:
        assert locked.signals.count(Event.RUN_LOCK_UNSET) == 0


async def test_every_mode_uses_the_lock_server_that_it_is_given(
    ground: Ground, redis_server: RedisServer
) -> None:
    async with house(ground, run_lock_url=redis_server.url) as here:
        await here.spoken("c1")
        async with here.client() as client:
            assert (await client.post("/v1/conversations/c1/finalize")).status_code == 200
        await here.settled()
        with Redis.from_url(redis_server.url) as beside:
            stats = beside.info("commandstats")
            assert stats["cmdstat_set"]["calls"] == stats["cmdstat_del"]["calls"] == 1
            assert beside.dbsize() == 0


async def test_b_with_a_lock_server_down_from_the_start_the_lease_alone_decides(
    ground: Ground,
) -> None:
    assert await two_deliveries(ground, f"redis://127.0.0.1:{free_port()}/0") == (1, 1)


async def test_c_with_a_lock_server_lost_in_mid_run_the_lease_alone_decides(
    ground: Ground, redis_server: RedisServer
) -> None:
    assert await two_deliveries(ground, redis_server.url, redis_server.end) == (1, 1)


async def test_e_after_a_failover_to_an_empty_replica_the_lease_alone_decides(
    ground: Ground, redis_server: RedisServer
) -> None:
    def fail_over() -> None:
        redis_server.end()
        redis_server.start()

    assert await two_deliveries(ground, redis_server.url, fail_over) == (0, 0)


# (d) The acquire is applied and its answer is lost.


@asynccontextmanager
async def deaf(server: RedisServer) -> AsyncIterator[str]:
    """Stand before the server: pass on what is asked, and no answer once a script was sent."""
    port = int(server.url.split(":")[2].split("/")[0])

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, asks = await asyncio.open_connection("127.0.0.1", port)
        try:
            while chunk := await reader.read(65_536):
                asks.write(chunk)
                answer = await answers.read(65_536)
                if b"EVAL" not in chunk:
                    writer.write(answer)
        finally:
            asks.close()
            writer.close()

    listening = await asyncio.start_server(passed, "127.0.0.1", 0)
    async with listening:
        yield f"redis://127.0.0.1:{listening.sockets[0].getsockname()[1]}/0"


async def test_d_a_lock_that_was_taken_unheard_delays_no_later_attempt(
    ground: Ground, redis_server: RedisServer
) -> None:
    fails_once = FakeProcessor(enrich=in_turn(fails(StepFailedError), record))
    async with AsyncExitStack() as both:
        url = await both.enter_async_context(deaf(redis_server))
        first = await both.enter_async_context(worker(ground, url, fails_once))
        job = await first.admitted()
        assert (await first.deliver(job))[0] == 500
        assert away(first) == 1
        left = await first.workshop.job(job)
        with Redis.from_url(redis_server.url) as beside:
            assert beside.get(PREFIX + job.job_id) == (left.claim_id or "").encode()
            assert beside.ttl(PREFIX + job.job_id) > TTL / 2
            second = await both.enter_async_context(worker(ground, redis_server.url))
            second.clock.advance(STALE)
            assert await second.deliver(job) == DONE
            assert beside.get(PREFIX + job.job_id) is None
        assert second.workshop.signals.count(Event.RUN_LOCK_TAKEN_OVER) == 1
        assert away(second) == 0
        await second.checks()


@pytest.mark.parametrize("deliveries", [2, 4])
async def test_d_a_lock_that_was_taken_unheard_lets_one_delivery_through(
    deliveries: int, ground: Ground, redis_server: RedisServer
) -> None:
    async with deaf(redis_server) as url, worker(ground, url) as here:
        job = await here.admitted()
        told = await asyncio.gather(*(here.deliver(job) for _ in range(deliveries)))
        assert told.count(DONE) >= 1
        assert {status for status, _, _ in told} <= {200, 409, 503}
        assert here.workshop.processor.count("enrich") == 1
        assert away(here) >= 1
        await here.checks()
