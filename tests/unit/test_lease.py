"""The owner's side of a lease: renewals, one lane, and what its loss does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from listen_finalization.domain.codes import Actor, EffectState, FailureCode, ReleaseCause, Step
from listen_finalization.domain.commands import (
    Checkpoint,
    ClaimJob,
    Command,
    Complete,
    OwnedCommand,
    Release,
)
from listen_finalization.domain.decision import Answer, Decision
from listen_finalization.domain.job import Claim, Effect, Job, seconds
from listen_finalization.errors import (
    StoreBrokenError,
    StoreBusyError,
    StoreError,
    ValueRefusedError,
)
from listen_finalization.finalizer import ResultKind
from listen_finalization.lease import (
    ConversationLostError,
    Lease,
    OwnershipLostError,
    apply_again,
)
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.outbox.sqlite import SqliteOutbox
from listen_finalization.testing.clock import FakeClock
from listen_finalization.testing.workshop import Workshop

CLAIM = "a" * 32
THIRD = 0.05
SENT = Effect(Step.FANOUT, EffectState.SENT, "d0")


class Noting(SqliteOutbox):
    """Notes commands with the time of their start, and fails or waits as it is told."""

    def __init__(self, workshop: Workshop) -> None:
        super().__init__(workshop.store)
        self.commands: list[Command] = []
        self.times: list[float] = []
        self.fault: Callable[[], StoreError | None] = lambda: None
        self.after_commit = False
        self.pause = 0.0
        self.at_once = 0
        self.most_at_once = 0

    async def apply(self, command: Command) -> Answer:
        self.commands.append(command)
        self.times.append(time.monotonic())
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.pause)
            return await self._apply(command)
        finally:
            self.at_once -= 1

    async def _apply(self, command: Command) -> Answer:
        fault = self.fault()
        if fault is not None and self.after_commit:
            await super().apply(command)
        if fault is not None:
            raise fault
        return await super().apply(command)


class Owner:
    """A leased job, its lease and what watches it."""

    def __init__(self, workshop: Workshop, job: Job, third: float) -> None:
        self.workshop = workshop
        self.job = job
        self.outbox = Noting(workshop)
        self.signals = Signals()
        self.lease = Lease(self.outbox, job, Actor.WORKER, self.signals, length=seconds(3 * third))

    async def stolen(self) -> None:
        """Let another worker claim the row, its owner's process being dead."""
        other = ClaimJob(self.job.job_id, 1, "b" * 32, dead_claim=CLAIM)
        assert isinstance(await self.workshop.outbox.apply(other), Decision)

    async def kept(self, run: asyncio.Task[object], limit: float = 5.0) -> None:
        async with asyncio.timeout(limit):
            await asyncio.gather(run, return_exceptions=True)


async def owner(workshop: Workshop, third: float = THIRD) -> Owner:
    job = await workshop.admitted()
    answer = await workshop.outbox.apply(ClaimJob(job.job_id, 1, CLAIM))
    assert isinstance(answer, Decision) and answer.job is not None
    return Owner(workshop, answer.job, third)


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncIterator[Workshop]:
    async with Workshop(tmp_path) as made:
        yield made


async def test_a_run_renews_every_third_of_its_lease(workshop: Workshop) -> None:
    mine = await owner(workshop)
    run: asyncio.Task[object] = asyncio.ensure_future(asyncio.sleep(10 * THIRD))
    mine.lease.keep(run)
    await run
    await mine.lease.stop()
    assert 5 <= len(mine.outbox.commands) <= 10
    assert all(isinstance(c, Checkpoint) and not c.effects for c in mine.outbox.commands)
    gaps = [b - a for a, b in zip(mine.outbox.times, mine.outbox.times[1:], strict=False)]
    assert min(gaps) >= 0.9 * THIRD


async def test_a_renewal_moves_the_lease_end_and_the_due_time_and_nothing_else(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    async with Workshop(tmp_path, clock=clock) as workshop:
        mine = await owner(workshop)
        clock.advance(5)
        after = await mine.lease.prove()
        assert after.lease_expires_at == after.reconcile_after_at == clock() + seconds(15)
        assert after.history == mine.job.history
        assert (after.lease_epoch, after.attempt_count) == (1, 1)


async def test_a_blocking_step_in_its_thread_does_not_starve_the_renewal(
    workshop: Workshop,
) -> None:
    mine = await owner(workshop)
    slot = workshop.slots.take()
    assert slot is not None
    run: asyncio.Task[object] = asyncio.ensure_future(slot.call(time.sleep, 6 * THIRD))
    mine.lease.keep(run)
    await run
    await mine.lease.stop()
    slot.give_back()
    assert len(mine.outbox.commands) >= 3


async def test_a_store_in_trouble_does_not_end_the_run_and_is_asked_again_sooner(
    workshop: Workshop,
) -> None:
    mine = await owner(workshop, third=0.2)
    faults: list[StoreError] = [StoreBusyError(), StoreBusyError()]
    mine.outbox.fault = lambda: faults.pop() if faults else None
    run: asyncio.Task[object] = asyncio.ensure_future(asyncio.sleep(0.5))
    mine.lease.keep(run)
    await run
    await mine.lease.stop()
    assert mine.signals.count(Event.RENEWAL_FAILED) == 2
    assert not mine.lease.lost
    first, second, third = mine.outbox.times[:3]
    assert max(second - first, third - second) < 0.15


async def test_a_lost_lease_cancels_the_run(workshop: Workshop) -> None:
    mine = await owner(workshop)
    run: asyncio.Task[object] = asyncio.ensure_future(asyncio.sleep(60))
    mine.lease.keep(run)
    await mine.stolen()
    await mine.kept(run)
    assert run.cancelled()
    assert mine.lease.lost
    assert mine.signals.count(Event.OWNERSHIP_LOST) == 1
    sent = len(mine.outbox.commands)
    await asyncio.sleep(3 * THIRD)
    assert len(mine.outbox.commands) == sent


async def test_no_renewal_follows_a_stop_even_where_one_was_under_way(workshop: Workshop) -> None:
    mine = await owner(workshop)
    mine.outbox.pause = 2 * THIRD
    run: asyncio.Task[object] = asyncio.ensure_future(asyncio.sleep(60))
    mine.lease.keep(run)
    async with asyncio.timeout(5):
        while not mine.outbox.commands:  # noqa: ASYNC110 - the outbox has no event
            await asyncio.sleep(0.005)
    await mine.lease.stop()
    await mine.lease.stop()
    sent = len(mine.outbox.commands)
    await asyncio.sleep(3 * THIRD)
    assert len(mine.outbox.commands) == sent == 1
    run.cancel()


async def test_all_writes_of_a_claim_pass_through_one_lane(workshop: Workshop) -> None:
    mine = await owner(workshop)
    mine.outbox.pause = 0.01
    run: asyncio.Task[object] = asyncio.ensure_future(asyncio.sleep(3 * THIRD))
    mine.lease.keep(run)
    await asyncio.gather(*(mine.lease.prove((SENT,)) for _ in range(10)))
    await run
    await mine.lease.settle(Release(mine.lease.claim, ReleaseCause.SHUTDOWN, FailureCode.SHUTDOWN))
    assert mine.outbox.most_at_once == 1
    assert len(mine.outbox.commands) >= 12


async def test_nothing_is_proved_after_another_claim(workshop: Workshop) -> None:
    mine = await owner(workshop)
    await mine.stolen()
    before = await workshop.job(mine.job)
    with pytest.raises(OwnershipLostError):
        await mine.lease.prove((SENT,))
    assert mine.lease.lost
    assert await workshop.job(mine.job) == before


async def test_a_checkpoint_for_a_conversation_that_is_gone_fences_the_job(
    workshop: Workshop,
) -> None:
    mine = await owner(workshop)
    await workshop.conversations.delete("ada", "c1")
    with pytest.raises(ConversationLostError):
        await mine.lease.prove((SENT,))
    job = await workshop.job(mine.job)
    assert (job.status, job.outcome, job.effects) == ("completed", "fenced", ())
    assert mine.signals.count(Event.JOB_FENCED) == 1


async def test_what_was_paid_for_is_stored_by_a_second_try(workshop: Workshop) -> None:
    mine = await owner(workshop)
    faults = [StoreBusyError(), StoreBusyError()]
    mine.outbox.fault = lambda: faults.pop() if faults else None
    assert (await mine.lease.prove((SENT,))).effects == (SENT,)
    assert len(mine.outbox.commands) == 3


async def test_a_settlement_whose_answer_was_lost_is_recognised_by_its_repeat(
    workshop: Workshop,
) -> None:
    mine = await owner(workshop)
    faults = [StoreBusyError()]
    mine.outbox.fault = lambda: faults.pop() if faults else None
    mine.outbox.after_commit = True
    answer = await mine.lease.settle(Complete(mine.lease.claim))
    assert isinstance(answer, Decision) and not answer.changed
    assert (await workshop.job(mine.job)).outcome == "success"


@pytest.mark.parametrize(
    ("error", "tries"), [(StoreBusyError, 4), (ValueRefusedError, 1), (StoreBrokenError, 1)]
)
async def test_a_command_is_repeated_only_where_that_can_help(
    error: type[StoreError], tries: int, workshop: Workshop
) -> None:
    mine = await owner(workshop)
    mine.outbox.fault = error
    with pytest.raises(error):
        await apply_again(mine.outbox, Checkpoint(mine.lease.claim))
    assert len(mine.outbox.commands) == tries


LEASE = 15.0


class Passing:
    """Stands in for `asyncio.sleep`: the time passes at once and is added up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        self._sleep = asyncio.sleep
        monkeypatch.setattr(asyncio, "sleep", self)

    async def __call__(self, delay: float, result: object = None) -> object:
        self.seconds += delay
        return await self._sleep(0, result)

    def busy_for(self, length: float) -> Callable[[], StoreError | None]:
        return lambda: StoreBusyError() if self.seconds < length else None


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Passing:
    return Passing(monkeypatch)


async def patient(workshop: Workshop, fault: Callable[[], StoreError | None]) -> Owner:
    mine = await owner(workshop, third=LEASE / 3)
    mine.outbox.fault = fault
    return mine


@pytest.mark.parametrize(
    ("command", "left"),
    [
        (Complete, ("completed", "success", 1)),
        (
            lambda claim: Release(claim, ReleaseCause.SHUTDOWN, FailureCode.SHUTDOWN),
            ("queued", None, 0),
        ),
    ],
)
async def test_a_settlement_lands_once_the_store_is_back_within_a_lease_and_costs_no_attempt(
    command: Callable[[Claim], OwnedCommand],
    left: tuple[str, str | None, int],
    workshop: Workshop,
    passing: Passing,
) -> None:
    mine = await patient(workshop, passing.busy_for(LEASE - 1.5))
    answer = await mine.lease.settle(command(mine.lease.claim))
    assert isinstance(answer, Decision) and answer.changed
    row = await workshop.job(mine.job)
    assert (row.status, row.outcome, row.attempt_count) == left
    assert row.lease_epoch == 1


async def test_a_stored_checkpoint_lands_once_the_store_is_back_within_a_lease(
    workshop: Workshop, passing: Passing
) -> None:
    mine = await patient(workshop, passing.busy_for(LEASE - 1.5))
    assert (await mine.lease.prove((SENT,))).effects == (SENT,)
    assert (await workshop.job(mine.job)).effects == (SENT,)


async def test_a_settlement_is_given_up_after_a_lease(workshop: Workshop, passing: Passing) -> None:
    mine = await patient(workshop, StoreBusyError)
    with pytest.raises(StoreBusyError):
        await mine.lease.settle(Complete(mine.lease.claim))
    assert LEASE - 1 <= passing.seconds <= LEASE


async def test_a_renewal_is_left_to_the_next(workshop: Workshop, passing: Passing) -> None:
    mine = await patient(workshop, StoreBusyError)
    with pytest.raises(StoreBusyError):
        await mine.lease.prove()
    assert (len(mine.outbox.commands), passing.seconds) == (1, 0)
    assert not mine.lease.lost


@pytest.mark.parametrize("error", [ValueRefusedError, StoreBrokenError])
async def test_what_no_repeat_can_help_is_given_up_at_once(
    error: type[StoreError], workshop: Workshop, passing: Passing
) -> None:
    mine = await patient(workshop, error)
    with pytest.raises(error):
        await mine.lease.prove((SENT,))
    with pytest.raises(error):
        await mine.lease.settle(Complete(mine.lease.claim))
    assert (len(mine.outbox.commands), passing.seconds) == (2, 0)


async def test_a_store_that_is_away_at_the_end_of_a_run_costs_no_second_run(
    tmp_path: Path, passing: Passing
) -> None:
    class Away(SqliteOutbox):
        async def apply(self, command: Command) -> Answer:
            if isinstance(command, Complete) and passing.seconds < LEASE - 1.5:
                raise StoreBusyError
            return await super().apply(command)

    async with Workshop(tmp_path) as workshop:
        job = await workshop.admitted()
        workshop.finalizer._outbox = Away(workshop.store)
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        row = await workshop.job(job)
        assert (row.outcome, row.attempt_count, row.releases, row.lease_epoch) == (
            "success",
            1,
            0,
            1,
        )
        assert workshop.processor.count() == 2
