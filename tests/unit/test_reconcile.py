"""A round of recovery: bounded, fair, right with several replicas, and ended by no row."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from listen_finalization.domain.codes import RefusalCode
from listen_finalization.domain.commands import ClaimJob, Redispatch
from listen_finalization.domain.decision import Refused
from listen_finalization.domain.job import Job, seconds
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import StoreBusyError, ValueRefusedError
from listen_finalization.outbox.sqlite import SqliteOutbox
from listen_finalization.reconcile import AGAIN_LIMIT, PAGE, STAMP, Reconciler, Recovery
from listen_finalization.testing.clock import FakeClock
from listen_finalization.testing.processor import FakeProcessor
from listen_finalization.testing.workshop import Workshop

STALE = 300
TABLE = "conversation_finalization_jobs"


class Scene:
    """Due rows of the cloud kind, under a clock that only the test moves."""

    def __init__(self, workshop: Workshop, clock: FakeClock) -> None:
        self.workshop = workshop
        self.clock = clock
        self.outbox: Any = workshop.outbox
        self.budget = 60.0

    def reconciler(self, recovery: Recovery = Recovery.HAND_OVER) -> Reconciler:
        return Reconciler(
            self.outbox,
            self.workshop.store.records,
            self.workshop.dispatcher,
            self.workshop.signals,
            recovery=recovery,
            finalizer=self.workshop.finalizer,
            interval=300,
            stale=STALE,
            budget=self.budget,
            monotonic=self.clock.monotonic,
        )

    async def due(self, number: int, **admit: Any) -> list[Job]:
        jobs = []
        for n in range(number):
            jobs.append(await self.workshop.admitted(f"c{n:03}", **admit))
            self.clock.advance(0.001)
        self.clock.advance(STALE + 1)
        self.workshop.dispatcher.handed.clear()
        return jobs

    def sql(self, statement: str, *values: object) -> None:
        with sqlite3.connect(self.workshop.directory / "listen.db", timeout=10) as connection:
            connection.execute(statement, values)
        connection.close()

    @property
    def handed(self) -> list[tuple[str, int]]:
        return [(j.job_id, j.dispatch_generation) for j, _ in self.workshop.dispatcher.handed]


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    clock = FakeClock()
    async with Workshop(tmp_path, policy=Policy(), clock=clock) as workshop:
        yield Scene(workshop, clock)


async def test_a_due_row_gets_a_new_generation_and_a_task_of_its_own(scene: Scene) -> None:
    (job,) = await scene.due(1)
    done = await scene.reconciler().run_once()
    left = await scene.workshop.job(job)
    assert (done.seen, done.redispatched, done.again) == (1, 1, 0)
    assert (left.dispatch_generation, left.handovers) == (2, 2)
    assert left.reconcile_after_at == scene.clock() + seconds(2 * STALE)
    assert scene.handed == [(job.job_id, 2)]


async def test_a_row_that_is_not_due_or_runs_is_not_touched(scene: Scene) -> None:
    jobs = [await scene.workshop.admitted(name) for name in ("c1", "c2")]
    scene.clock.advance(STALE - 10)
    await scene.workshop.outbox.apply(ClaimJob(jobs[0].job_id, 1, "a" * 32))
    before = [await scene.workshop.job(job) for job in jobs]
    done = await scene.reconciler().run_once()
    assert done.seen == 0
    assert [await scene.workshop.job(job) for job in jobs] == before


async def test_all_pages_are_drained_oldest_first(scene: Scene) -> None:
    number = 2 * PAGE + 7
    jobs = await scene.due(number)
    done = await scene.reconciler().run_once()
    assert (done.seen, done.redispatched, done.out_of_time) == (number, number, False)
    assert scene.handed == [(job.job_id, 2) for job in jobs]


async def test_no_round_redispatches_more_than_two_hundred_rows_again(scene: Scene) -> None:
    number = AGAIN_LIMIT + 30
    jobs = await scene.due(number)
    scene.sql(f"UPDATE {TABLE} SET handovers = 2")
    done = await scene.reconciler().run_once()
    assert (done.redispatched, done.again, done.postponed) == (AGAIN_LIMIT, AGAIN_LIMIT, 30)
    rows = [await scene.workshop.job(job) for job in jobs]
    assert [row.dispatch_generation for row in rows] == [2] * AGAIN_LIMIT + [1] * 30
    assert all((row.reconcile_after_at or 0) > scene.clock() for row in rows)
    assert {row.reconcile_after_at for row in rows[-30:]} == {scene.clock() + seconds(STALE)}
    assert len(scene.handed) == AGAIN_LIMIT


async def test_a_slow_queue_is_given_twice_the_time_at_each_hand_over_up_to_four_hours(
    scene: Scene,
) -> None:
    (job,) = await scene.due(1)
    waits = []
    for _ in range(8):
        await scene.reconciler().run_once(force=True)
        left = await scene.workshop.job(job)
        waits.append(((left.reconcile_after_at or 0) - scene.clock()) // 1_000_000)
        scene.clock.advance(waits[-1] + 1)
    assert waits == [600, 1200, 2400, 4800, 9600, 14400, 14400, 14400]


async def test_a_stamp_younger_than_half_an_interval_skips_the_round(scene: Scene) -> None:
    await scene.due(1)
    assert not (await scene.reconciler().run_once()).skipped
    scene.clock.advance(149)
    assert (await scene.reconciler().run_once()).skipped
    assert not (await scene.reconciler().run_once(force=True)).skipped
    scene.clock.advance(151)
    assert not (await scene.reconciler().run_once()).skipped


async def test_a_round_that_leaves_the_jobs_does_not_stand_for_one_that_runs_them(
    scene: Scene,
) -> None:
    (job,) = await scene.due(1)
    assert not (await scene.reconciler(Recovery.LEAVE).run_once()).skipped
    done = await scene.reconciler(Recovery.RUN).run_once()
    assert (done.skipped, done.ran) == (False, 1)
    assert (await scene.workshop.job(job)).terminal
    assert (await scene.reconciler(Recovery.RUN).run_once()).skipped


@pytest.mark.parametrize("stamp", [{}, {"at": "soon"}, {"at": None}, {"at": 2**60}])
async def test_no_odd_stamp_can_stop_the_rounds(stamp: dict[str, Any], scene: Scene) -> None:
    await scene.workshop.store.records.put_if(*STAMP, stamp, version=0)
    assert not (await scene.reconciler().run_once()).skipped


async def test_of_rounds_at_the_same_time_one_takes_the_stamp_and_all_are_right(
    scene: Scene,
) -> None:
    jobs = await scene.due(30)
    rounds = await asyncio.gather(*(scene.reconciler().run_once() for _ in range(5)))
    assert sum(not done.skipped for done in rounds) == 1
    assert sorted(scene.handed) == sorted((job.job_id, 2) for job in jobs)


async def test_forced_rounds_at_the_same_time_mint_one_generation_for_each_row(
    scene: Scene,
) -> None:
    jobs = await scene.due(30)
    rounds = await asyncio.gather(*(scene.reconciler().run_once(force=True) for _ in range(4)))
    assert sum(done.redispatched for done in rounds) == len(jobs)
    assert {(await scene.workshop.job(job)).dispatch_generation for job in jobs} == {2}
    assert set(scene.handed) == {(job.job_id, 2) for job in jobs}


async def test_the_end_of_the_last_whole_round_can_be_read(scene: Scene) -> None:
    await scene.reconciler().run_once()
    first = await scene.workshop.store.records.get(*STAMP)
    assert first is not None and first.value["done"] == first.value["at"] == scene.clock()
    scene.clock.advance(300)
    scene.outbox = Failing(scene.workshop, at=1)
    await scene.due(1)
    with pytest.raises(StoreBusyError):
        await scene.reconciler().run_once()
    held = await scene.workshop.store.records.get(*STAMP)
    assert held is not None
    assert held.value["done"] == first.value["done"] < held.value["at"]


class Failing(SqliteOutbox):
    """Fails at the hand-over number `at`, once."""

    def __init__(self, workshop: Workshop, at: int, error: type[Exception] = StoreBusyError):
        super().__init__(workshop.store)
        self.at = at
        self.error = error
        self.count = 0

    async def apply(self, command: Any) -> Any:
        self.count += isinstance(command, Redispatch)
        if self.count == self.at:
            self.count += 1
            raise self.error
        return await super().apply(command)


async def test_a_store_error_ends_the_round_and_the_next_takes_the_rest(scene: Scene) -> None:
    jobs = await scene.due(30)
    scene.outbox = Failing(scene.workshop, at=7)
    with pytest.raises(StoreBusyError):
        await scene.reconciler().run_once()
    assert len(scene.handed) == 6
    done = await scene.reconciler().run_once(force=True)
    assert done.redispatched == 24
    assert {(await scene.workshop.job(job)).dispatch_generation for job in jobs} == {2}


async def test_a_row_that_cannot_be_decided_is_set_aside_and_the_round_goes_on(
    scene: Scene,
) -> None:
    jobs = await scene.due(10)
    scene.outbox = Failing(scene.workshop, at=3, error=ValueRefusedError)
    done = await scene.reconciler().run_once()
    assert (done.redispatched, done.set_aside) == (9, 1)
    bad = await scene.workshop.job(jobs[2])
    assert bad.dispatch_generation == 1
    assert (bad.reconcile_after_at or 0) > scene.clock()


@pytest.mark.parametrize("damage", ["status = 'paused'", "schema_version = 99", "effects = '{'"])
@pytest.mark.parametrize("recovery", Recovery)
async def test_a_stubborn_prefix_of_unreadable_rows_starves_nobody(
    damage: str, recovery: Recovery, scene: Scene
) -> None:
    jobs = await scene.due(PAGE + 5)
    last = jobs[-1].job_id
    scene.sql(f"UPDATE {TABLE} SET {damage} WHERE job_id <> ?", last)
    done = await scene.reconciler(recovery).run_once()
    status_alone = damage.startswith("status") or recovery is not Recovery.LEAVE
    assert done.seen == PAGE + 5
    assert done.set_aside + done.postponed == (PAGE + 4 if status_alone else 0)
    if recovery is Recovery.HAND_OVER:
        assert scene.handed == [(last, 2)]
    if recovery is Recovery.RUN:
        assert (await scene.workshop.job(jobs[-1])).outcome == "success"


async def test_a_round_stops_when_its_time_is_over_even_within_a_page(scene: Scene) -> None:
    class Slow(SqliteOutbox):
        async def apply(self, command: Any) -> Any:
            scene.clock.advance(10)
            return await super().apply(command)

    await scene.due(20)
    scene.outbox = Slow(scene.workshop.store)
    scene.budget = 55
    done = await scene.reconciler().run_once()
    assert (done.seen, done.out_of_time) == (6, True)


@pytest.mark.parametrize("recovery", Recovery)
async def test_the_state_part_runs_in_every_mode(recovery: Recovery, scene: Scene) -> None:
    job = await scene.workshop.admitted(byok=True, holds_keys=True)
    scene.clock.advance(STALE)
    done = await scene.reconciler(recovery).run_once()
    assert done.parked == 1
    assert (await scene.workshop.job(job)).status == "blocked_byok"


async def test_a_row_whose_conversation_was_marked_since_is_parked_and_not_handed_over(
    scene: Scene,
) -> None:
    (job,) = await scene.due(1)
    await scene.workshop.spoken("c000", text="with keys", byok=True)
    done = await scene.reconciler().run_once()
    assert (done.parked, scene.handed) == (1, [])
    assert (await scene.workshop.job(job)).status == "blocked_byok"


async def test_a_spent_budget_and_a_lost_conversation_end_here(scene: Scene) -> None:
    spent, gone = await scene.due(2)
    scene.sql(
        f"UPDATE {TABLE} SET attempt_count = 5, lease_epoch = 5 WHERE job_id = ?", spent.job_id
    )
    await scene.workshop.conversations.delete("ada", "c001")
    done = await scene.reconciler().run_once()
    assert (done.ended, done.fenced, scene.handed) == (1, 1, [])
    assert (await scene.workshop.job(spent)).failure_code == "worker_lost"
    assert (await scene.workshop.job(gone)).outcome == "fenced"


@pytest.mark.parametrize("error", [None, RuntimeError("canary")])
async def test_a_queue_that_refuses_is_counted_and_the_rows_keep_their_due_time(
    error: Exception | None, scene: Scene
) -> None:
    jobs = await scene.due(3)
    scene.workshop.dispatcher.takes = False
    scene.workshop.dispatcher.error = error
    done = await scene.reconciler().run_once()
    assert (done.redispatched, done.enqueue_failed) == (3, 3)
    rows = [await scene.workshop.job(job) for job in jobs]
    assert all((row.reconcile_after_at or 0) > scene.clock() for row in rows)


async def test_an_expired_lease_is_handed_over_and_its_old_delivery_is_stale(
    scene: Scene,
) -> None:
    (job,) = await scene.due(1)
    await scene.workshop.outbox.apply(ClaimJob(job.job_id, 1, "a" * 32))
    scene.clock.advance(61)
    done = await scene.reconciler().run_once()
    assert (done.redispatched, scene.handed) == (1, [(job.job_id, 2)])
    late = await scene.workshop.outbox.apply(ClaimJob(job.job_id, 1, "b" * 32))
    assert isinstance(late, Refused) and late.code is RefusalCode.STALE_GENERATION


async def test_inline_runs_due_rows_four_at_once_and_moves_what_it_could_not_run(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    processor = FakeProcessor(delay=0.02)
    async with Workshop(tmp_path, processor, policy=Policy(), clock=clock, slots=3) as workshop:
        scene = Scene(workshop, clock)
        jobs = await scene.due(12)
        done = await scene.reconciler(Recovery.RUN).run_once()
        rows = [await workshop.job(job) for job in jobs]
        ended = [row for row in rows if row.terminal]
        assert done.ran == 12
        assert len(ended) + done.postponed == 12
        assert ended
        assert all((row.reconcile_after_at or 0) > clock() for row in rows if not row.terminal)
        assert scene.handed == []


async def test_embedded_leaves_deliveries_to_its_dispatcher(scene: Scene) -> None:
    jobs = await scene.due(3)
    before = [await scene.workshop.job(job) for job in jobs]
    done = await scene.reconciler(Recovery.LEAVE).run_once()
    assert (done.left, scene.handed) == (3, [])
    assert [await scene.workshop.job(job) for job in jobs] == before


async def test_terminal_rows_are_never_read(scene: Scene) -> None:
    jobs = await scene.due(5)
    for job in jobs:
        await scene.workshop.run(job)
    scene.clock.advance(10**6)
    assert (await scene.reconciler().run_once()).seen == 0
