"""Runs under the run lock: the table of `LeaseRunLock`, with a real finalizer, store and server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from listen_finalization.domain.codes import FailureCode, RefusalCode
from listen_finalization.domain.commands import ClaimJob, Command
from listen_finalization.domain.decision import Answer, Decision
from listen_finalization.domain.job import Job, seconds
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import StoreBusyError
from listen_finalization.finalizer import Delivery, ResultKind
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.ports import Liveness, Outbox
from listen_finalization.runlock.lock import LeaseRunLock
from listen_finalization.runlock.redis import PREFIX, RedisLocks
from listen_finalization.testing.clock import FakeClock
from listen_finalization.testing.processor import FakeProcessor, Held
from listen_finalization.testing.redis_server import RedisServer
from listen_finalization.testing.workshop import FakeLiveness, Workshop

from .invariants import check

CLOUD = Policy(lease=seconds(60))
UNKNOWN_JOB = "0b5cfd0a-1f2c-8f6e-9d3a-3f1c5a7e9b20"
A, B, C = "a" * 32, "b" * 32, "c" * 32


class Noting:
    """Notes the commands that reach an outbox, and fails to read while it is told so."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self.commands: list[Command] = []
        self.unreadable = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._outbox, name)

    async def apply(self, command: Command) -> Answer:
        self.commands.append(command)
        return await self._outbox.apply(command)

    async def get(self, job_id: str) -> Job | None:
        if self.unreadable:
            raise StoreBusyError
        return await self._outbox.get(job_id)


class Overtaken(RedisLocks):
    """Lets another worker, C, take over what `take` has just seen."""

    async def take(self, job_id: str, claim_id: str) -> bytes | None:
        seen = await super().take(job_id, claim_id)
        if seen is not None:
            assert await super().replace(job_id, C, seen=seen)
        return seen


class Drowsy(RedisLocks):
    """Carries the taking out and does not return."""

    async def take(self, job_id: str, claim_id: str) -> bytes | None:
        await super().take(job_id, claim_id)
        await asyncio.Event().wait()
        raise AssertionError


@asynccontextmanager
async def worker(
    directory: Path,
    server: RedisServer,
    processor: FakeProcessor | None = None,
    *,
    kind: type[RedisLocks] = RedisLocks,
    **options: Any,
) -> AsyncIterator[Workshop]:
    """Open one process of those that share a directory and a lock server."""
    opened: list[LeaseRunLock] = []

    def run_lock(outbox: Outbox, liveness: Liveness, signals: Signals) -> LeaseRunLock:
        locks = kind(server.url, signals, ttl=1800, time_limit=1.0)
        opened.append(LeaseRunLock(locks, outbox, liveness, signals))
        return opened[0]

    chosen: dict[str, Any] = {"policy": CLOUD, "wrapped": Noting, **options}
    async with Workshop(directory, processor, run_lock=run_lock, **chosen) as workshop:
        yield workshop
    await opened[0].close()


def noting(workshop: Workshop) -> Noting:
    assert isinstance(workshop.outbox, Noting)
    return workshop.outbox


def value(server: RedisServer, job: Job) -> bytes | None:
    with Redis.from_url(server.url) as beside:
        found: bytes | None = beside.get(PREFIX + job.job_id)
        return found


def put(server: RedisServer, job: Job, claim_id: str) -> None:
    with Redis.from_url(server.url) as beside:
        beside.set(PREFIX + job.job_id, claim_id, px=1_800_000)


async def claimed(workshop: Workshop, job: Job, claim_id: str) -> Job:
    """Claim as another worker does."""
    answer = await workshop.store.outbox.apply(ClaimJob(job.job_id, 1, claim_id))
    assert isinstance(answer, Decision) and answer.job is not None
    return answer.job


def troubles(workshop: Workshop) -> int:
    counts = workshop.signals.counts.items()
    return sum(count for (event, _), count in counts if event is Event.RUN_LOCK_AWAY)


async def test_a_run_holds_the_lock_under_its_claim_id_and_gives_it_back(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    held = Held()
    async with worker(tmp_path, redis_server, held.processor) as workshop:
        job = await workshop.admitted("conversation-4c1f")
        running = asyncio.ensure_future(workshop.run(job))
        await held.begun()
        row = await workshop.job(job)
        with Redis.from_url(redis_server.url) as beside:
            [key] = beside.scan_iter()
            assert beside.get(key) == (row.claim_id or "").encode()
            assert beside.ttl(key) > 1_700
            assert key == f"{PREFIX}{job.job_id}".encode()
        held.go.set()
        assert (await running).kind is ResultKind.COMPLETED
        assert value(redis_server, job) is None
        assert troubles(workshop) == 0


async def test_a_second_worker_is_refused_before_it_claims_and_leaves_the_lock(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    held = Held()
    async with (
        worker(tmp_path, redis_server, held.processor) as first,
        worker(tmp_path, redis_server) as second,
    ):
        job = await first.admitted()
        running = asyncio.ensure_future(first.run(job))
        await held.begun()
        before = await first.job(job)
        refused = await second.run(job)
        assert (refused.kind, refused.code) == (ResultKind.BUSY, RefusalCode.LEASE_HELD)
        assert noting(second).commands == []
        with Redis.from_url(redis_server.url) as beside:
            assert beside.info("commandstats")["cmdstat_eval"]["calls"] == 2
        assert await first.job(job) == before
        assert value(redis_server, job) == (before.claim_id or "").encode()
        assert second.signals.count(Event.CLAIM_REFUSED, RefusalCode.LEASE_HELD) == 1
        held.go.set()
        assert (await running).kind is ResultKind.COMPLETED
        assert second.processor.count() == 0
        check(tmp_path / "listen.db", max_attempts=5, calls=first.processor.calls)


async def test_the_lock_of_a_killed_worker_delays_nobody_once_its_lease_is_over(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    clock = FakeClock()
    async with worker(tmp_path, redis_server, clock=clock) as workshop:
        job = await workshop.admitted()
        put(redis_server, job, A)
        await claimed(workshop, job, A)
        assert (await workshop.run(job)).kind is ResultKind.BUSY
        assert value(redis_server, job) == A.encode()
        clock.advance(60)
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        assert value(redis_server, job) is None
        assert workshop.signals.count(Event.RUN_LOCK_TAKEN_OVER) == 1
        assert (await workshop.job(job)).lease_epoch == 2


async def test_the_lock_of_a_provably_dead_process_is_taken_over_with_its_lease(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    liveness = FakeLiveness(buried={A[:16]})
    async with worker(tmp_path, redis_server, liveness=liveness) as workshop:
        job = await workshop.admitted()
        put(redis_server, job, A)
        await claimed(workshop, job, A)
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        assert workshop.signals.count(Event.RUN_LOCK_TAKEN_OVER) == 1


@pytest.mark.parametrize("owner", [None, "", "x" * 5_000, A])
async def test_a_lock_that_the_row_does_not_name_is_taken_over(
    owner: str | None, tmp_path: Path, redis_server: RedisServer
) -> None:
    async with worker(tmp_path, redis_server) as workshop:
        job = await workshop.admitted()
        if owner is not None:
            put(redis_server, job, owner)
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        assert value(redis_server, job) is None
        assert workshop.signals.count(Event.RUN_LOCK_TAKEN_OVER) == (owner is not None)


async def test_a_stale_lock_does_not_hide_who_owns_the_lease(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    async with worker(tmp_path, redis_server) as workshop:
        job = await workshop.admitted()
        put(redis_server, job, A)
        await claimed(workshop, job, B)
        refused = await workshop.run(job)
        assert (refused.kind, refused.code) == (ResultKind.BUSY, RefusalCode.LEASE_HELD)
        assert (await workshop.job(job)).claim_id == B
        assert value(redis_server, job) == A.encode()


@pytest.mark.parametrize(
    ("delivery", "kind", "code"),
    [
        ({"generation": 2}, ResultKind.IGNORED, RefusalCode.STALE_GENERATION),
        ({"job_id": UNKNOWN_JOB}, ResultKind.UNKNOWN, RefusalCode.JOB_UNKNOWN),
        (
            {"uid": "eve", "conversation_id": "c1"},
            ResultKind.UNKNOWN,
            RefusalCode.WRONG_IDENTITY,
        ),
    ],
)
async def test_a_held_lock_hides_no_other_refusal_and_is_left_to_its_owner(
    delivery: dict[str, Any],
    kind: ResultKind,
    code: RefusalCode,
    tmp_path: Path,
    redis_server: RedisServer,
) -> None:
    async with worker(tmp_path, redis_server) as workshop:
        job = await workshop.admitted()
        await claimed(workshop, job, A)
        noting(workshop).commands.clear()
        one = Delivery(**{"job_id": job.job_id, "generation": 1, **delivery})
        with Redis.from_url(redis_server.url) as beside:
            beside.set(PREFIX + one.job_id, A)
            told = await workshop.finalizer.run(one)
            assert (told.kind, told.code) == (kind, code)
            assert len(noting(workshop).commands) == 1
            assert beside.get(PREFIX + one.job_id) == A.encode()


async def test_a_held_lock_does_not_hide_that_a_job_is_over(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    async with worker(tmp_path, redis_server) as workshop:
        job = await workshop.admitted()
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        put(redis_server, job, A)
        told = await workshop.run(job)
        assert (told.kind, told.code) == (ResultKind.IGNORED, RefusalCode.TERMINAL)


async def test_a_row_that_cannot_be_read_leaves_the_lock_and_the_claim_decides(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    async with worker(tmp_path, redis_server) as workshop:
        job = await workshop.admitted()
        put(redis_server, job, A)
        noting(workshop).unreadable = True
        result = await workshop.finalizer.run(Delivery(job.job_id, 1))
        assert result.kind is ResultKind.COMPLETED
        assert value(redis_server, job) == A.encode()


async def test_of_two_that_take_over_at_once_the_lease_takes_one_and_no_lock_is_stolen(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    clock = FakeClock()
    async with worker(tmp_path, redis_server, kind=Overtaken, clock=clock) as workshop:
        job = await workshop.admitted()
        put(redis_server, job, A)
        await claimed(workshop, job, A)
        clock.advance(60)
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        assert value(redis_server, job) == C.encode()
        assert workshop.signals.count(Event.RUN_LOCK_TAKEN_OVER) == 0


async def test_a_run_that_ends_before_it_claims_leaves_no_lock(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    async with worker(tmp_path, redis_server, kind=Drowsy) as workshop:
        job = await workshop.admitted()
        lock = workshop.run_lock
        assert lock is not None

        async def enter() -> None:
            async with lock.held(ClaimJob(job.job_id, 1, A)):
                raise AssertionError

        entering = asyncio.ensure_future(enter())
        async with asyncio.timeout(5):
            while value(redis_server, job) is None:  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.005)
        entering.cancel()
        await asyncio.gather(entering, return_exceptions=True)
        assert value(redis_server, job) is None


async def test_shutdown_gives_the_lock_back_with_the_lease(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    held = Held()
    async with worker(tmp_path, redis_server, held.processor) as workshop:
        job = await workshop.admitted()
        running = asyncio.ensure_future(workshop.run(job))
        await held.begun()
        closing = asyncio.ensure_future(workshop.finalizer.close(0))
        assert (await running).code is FailureCode.SHUTDOWN
        held.go.set()
        await closing
        assert value(redis_server, job) is None
        assert (await workshop.job(job)).status == "queued"


# Trouble in mid-run


def frozen(server: RedisServer) -> None:
    server.freeze()


def killed(server: RedisServer) -> None:
    server.end()


def paused(server: RedisServer) -> None:
    with Redis.from_url(server.url) as beside:
        beside.client_pause(60_000)


def emptied(server: RedisServer) -> None:
    with Redis.from_url(server.url) as beside:
        beside.flushall()


@pytest.mark.parametrize(
    ("fault", "code", "times"),
    [
        (frozen, "timed_out", 1),
        (paused, "timed_out", 1),
        (killed, "unreachable", 1),
        (emptied, "", 0),
    ],
)
async def test_whatever_befalls_the_server_in_mid_run_the_job_settles_and_it_is_counted(
    fault: Callable[[RedisServer], None],
    code: str,
    times: int,
    tmp_path: Path,
    redis_server: RedisServer,
) -> None:
    held = Held()
    async with worker(tmp_path, redis_server, held.processor) as workshop:
        job = await workshop.admitted()
        running = asyncio.ensure_future(workshop.run(job))
        await held.begun()
        await asyncio.to_thread(fault, redis_server)
        held.go.set()
        assert (await running).kind is ResultKind.COMPLETED
        ended = await workshop.job(job)
        assert (ended.status, ended.outcome, ended.lease_epoch) == ("completed", "success", 1)
        assert workshop.signals.count(Event.RUN_LOCK_AWAY, code) == troubles(workshop) == times
        check(tmp_path / "listen.db", max_attempts=5, calls=workshop.processor.calls)


async def test_after_a_server_was_emptied_a_second_worker_is_refused_by_the_lease_alone(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    held = Held()
    async with (
        worker(tmp_path, redis_server, held.processor) as first,
        worker(tmp_path, redis_server) as second,
    ):
        job = await first.admitted()
        running = asyncio.ensure_future(first.run(job))
        await held.begun()
        emptied(redis_server)
        refused = await second.run(job)
        assert (refused.kind, refused.code) == (ResultKind.BUSY, RefusalCode.LEASE_HELD)
        assert value(redis_server, job) is None
        put(redis_server, job, B)
        held.go.set()
        assert (await running).kind is ResultKind.COMPLETED
        assert value(redis_server, job) == B.encode()
        assert second.processor.count() == 0
