"""Deliveries of a run that is ended midway: an answer that had come is noted, by its owner only."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from listen_finalization.domain.codes import Actor, EffectState, Step
from listen_finalization.domain.commands import Checkpoint, ClaimJob
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import Job
from listen_finalization.errors import StoreBusyError
from listen_finalization.finalizer import ResultKind
from listen_finalization.lease import Lease, OwnershipLostError
from listen_finalization.outbox.sqlite import SqliteOutbox
from listen_finalization.processing import fanout
from listen_finalization.processing.delivery import DeliveryResult
from listen_finalization.processing.fanout import Fanout
from listen_finalization.testing.clock import FakeClock
from listen_finalization.testing.workshop import EMBEDDED, FakeSender, Workshop

CLAIM = "a" * 32
NOTED = ("done", "http_2xx")
UNKNOWN = ("sent", None)


class Half(FakeSender):
    """Answers `d0` at once; `d1` never answers until `answers` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = False
        self.hangs = asyncio.Event()
        self.ended = False

    async def send(self, delivery: Any) -> DeliveryResult:
        result = await super().send(delivery)
        if delivery.destination.id == "d1" and not self.answers:
            self.hangs.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.ended = True
        return result

    @property
    def counts(self) -> tuple[int, int]:
        return self.count("d0"), self.count("d1")


def states(job: Job) -> list[tuple[str, str | None]]:
    return [(line.state, line.code) for line in job.deliveries]


async def finished(workshop: Workshop, job: Job, sender: Half) -> None:
    """Run again with a receiver that answers; what was noted is not called again."""
    sender.answers = True
    assert (await workshop.run(job)).kind is ResultKind.COMPLETED
    assert sender.counts == (1, 2)
    assert states(await workshop.job(job)) == [NOTED, NOTED]


async def test_an_answer_that_had_come_at_shutdown_is_noted_and_its_receiver_not_called_again(
    tmp_path: Path,
) -> None:
    sender = Half()
    async with Workshop(tmp_path, sender=sender) as workshop:
        job = await workshop.admitted(subscribers=2)
        run = asyncio.ensure_future(workshop.run(job))
        await sender.hangs.wait()
        await workshop.finalizer.close(0)
        await run
        left = await workshop.job(job)
        assert (left.status, left.failure_code, left.attempt_count) == ("queued", "shutdown", 0)
        assert states(left) == [NOTED, UNKNOWN]
    async with Workshop(tmp_path, sender=sender) as workshop:
        await finished(workshop, job, sender)


async def test_an_answer_that_had_come_when_the_run_timed_out_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fanout, "NOTE_EVERY", 60.0)
    sender, clock = Half(), FakeClock()
    async with Workshop(tmp_path, sender=sender, clock=clock, run_timeout=1.0) as workshop:
        job = await workshop.admitted(subscribers=2)
        assert (await workshop.run(job)).kind is ResultKind.FAILED
        left = await workshop.job(job)
        assert (left.status, left.failure_code) == ("queued", "run_timeout")
        assert states(left) == [NOTED, UNKNOWN]
        clock.advance(10)
        await finished(workshop, job, sender)


async def test_an_answer_whose_checkpoint_failed_is_noted_at_the_end_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is away until the run has given up, and back before it is settled."""

    class Away(SqliteOutbox):
        async def apply(self, command: Any) -> Any:
            final = isinstance(command, Checkpoint) and any(
                line.step is Step.FANOUT and line.final for line in command.effects
            )
            if final and not sender.ended:
                raise StoreBusyError
            return await super().apply(command)

    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _: sleep(0))
    monkeypatch.setattr(fanout, "NOTE_EVERY", 0.0)
    sender, clock = Half(), FakeClock()
    async with Workshop(tmp_path, sender=sender, clock=clock) as workshop:
        job = await workshop.admitted(subscribers=2)
        workshop.finalizer._outbox = Away(workshop.store)
        assert (await workshop.run(job)).kind is ResultKind.DEFERRED
        left = await workshop.job(job)
        assert (left.status, left.failure_code) == ("queued", "environment_store")
        assert states(left) == [NOTED, UNKNOWN]
        clock.advance(60)
        await finished(workshop, job, sender)


class Noting(SqliteOutbox):
    """Keeps the checkpoints that were sent."""

    def __init__(self, workshop: Workshop) -> None:
        super().__init__(workshop.store)
        self.checkpoints: list[Checkpoint] = []

    async def apply(self, command: Any) -> Any:
        if isinstance(command, Checkpoint):
            self.checkpoints.append(command)
        return await super().apply(command)


async def test_nothing_is_noted_once_the_lease_was_lost(tmp_path: Path) -> None:
    sender = Half()
    async with Workshop(tmp_path, sender=sender) as workshop:
        job = await workshop.admitted(subscribers=2)
        claimed = await workshop.outbox.apply(ClaimJob(job.job_id, 1, CLAIM))
        assert isinstance(claimed, Decision) and claimed.job is not None
        outbox = Noting(workshop)
        lease = Lease(outbox, claimed.job, Actor.WORKER, workshop.signals, length=EMBEDDED.lease)
        made = Fanout(workshop.destinations, sender)
        await lease.prove(await made.planned(lease.job))
        sending = asyncio.ensure_future(made.send(lease, b"{}"))
        await sender.hangs.wait()
        thief = await workshop.outbox.apply(ClaimJob(job.job_id, 1, "b" * 32, dead_claim=CLAIM))
        assert isinstance(thief, Decision)
        with pytest.raises(OwnershipLostError):
            await lease.prove()
        sent = len(outbox.checkpoints)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert len(outbox.checkpoints) == sent
        assert await workshop.job(job) == thief.job
        assert [line.state for line in lease.job.deliveries] == [EffectState.SENT] * 2
