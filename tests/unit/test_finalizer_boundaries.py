"""Where a run ends early: its caller leaves, the process shuts down, the store stays away."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from listen_finalization.domain.codes import FailureCode
from listen_finalization.domain.commands import ClaimJob
from listen_finalization.domain.decision import Answer
from listen_finalization.domain.job import seconds
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import StoreBusyError, StoreUnavailableError
from listen_finalization.finalizer import ResultKind
from listen_finalization.outbox.sqlite import SqliteOutbox
from listen_finalization.testing.clock import FakeClock
from listen_finalization.testing.processor import FakeProcessor, Held
from listen_finalization.testing.workshop import Workshop

CLOUD = Policy(lease=seconds(60))


async def test_a_caller_that_goes_away_does_not_end_the_run(tmp_path: Path) -> None:
    held = Held()
    async with Workshop(tmp_path, held.processor) as workshop:
        job = await workshop.admitted()
        caller = asyncio.ensure_future(workshop.run(job))
        await held.begun()
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        assert workshop.finalizer.running == 1
        held.go.set()
        async with asyncio.timeout(5):
            while workshop.finalizer.running:  # noqa: ASYNC110 - nobody is left to wait for it
                await asyncio.sleep(0.005)
        assert (await workshop.job(job)).outcome == "success"


async def test_shutdown_lets_runs_end_within_the_grace(tmp_path: Path) -> None:
    async with Workshop(tmp_path, FakeProcessor(delay=0.05)) as workshop:
        job = await workshop.admitted()
        running = asyncio.ensure_future(workshop.run(job))
        async with asyncio.timeout(5):
            while not workshop.processor.calls:  # noqa: ASYNC110 - the step is in a thread
                await asyncio.sleep(0.005)
        await workshop.finalizer.close(5)
        assert (await running).kind is ResultKind.COMPLETED
        refused = await workshop.run(job)
        assert (refused.kind, refused.code) == (ResultKind.UNAVAILABLE, FailureCode.SHUTDOWN)


@pytest.mark.parametrize("policy", [CLOUD, None])
async def test_shutdown_releases_what_cannot_end_and_gives_the_attempt_back(
    policy: Policy | None, tmp_path: Path
) -> None:
    held = Held()
    chosen: dict[str, Any] = {} if policy is None else {"policy": policy}
    async with Workshop(tmp_path, held.processor, clock=FakeClock(), **chosen) as workshop:
        job = await workshop.admitted()
        running = asyncio.ensure_future(workshop.run(job))
        await held.begun()
        await workshop.finalizer.close(0.01)
        result = await running
        left = await workshop.job(job)
        assert (left.status, left.attempt_count, left.releases) == ("queued", 0, 1)
        assert left.reconcile_after_at == left.updated_at
        # No hand-over was recorded, so the queue must not take the task for done.
        assert (result.kind, result.code) == (ResultKind.UNAVAILABLE, FailureCode.SHUTDOWN)
        held.go.set()


async def test_shutdown_releases_a_claim_that_was_under_way(tmp_path: Path) -> None:
    class Slow(SqliteOutbox):
        async def apply(self, command: Any) -> Answer:
            answer = await super().apply(command)
            if isinstance(command, ClaimJob):
                await asyncio.sleep(0.1)
            return answer

    async with Workshop(tmp_path) as workshop:
        job = await workshop.admitted()
        workshop.finalizer._outbox = Slow(workshop.store)
        running = asyncio.ensure_future(workshop.run(job))
        await asyncio.sleep(0.03)
        await workshop.finalizer.close(0)
        await running
        left = await workshop.job(job)
        assert (left.status, left.lease_epoch, left.attempt_count) == ("queued", 1, 0)
        assert workshop.processor.count() == 0


async def test_shutdown_leaves_a_settlement_that_is_under_way_alone(tmp_path: Path) -> None:
    class Slow(SqliteOutbox):
        tries = 0

        async def apply(self, command: Any) -> Answer:
            if type(command).__name__ == "Complete":
                Slow.tries += 1
                if Slow.tries == 1:
                    raise StoreBusyError
            return await super().apply(command)

    async with Workshop(tmp_path) as workshop:
        job = await workshop.admitted()
        workshop.finalizer._outbox = Slow(workshop.store)
        running = asyncio.ensure_future(workshop.run(job))
        while not Slow.tries:  # noqa: ASYNC110 - until the first try was refused
            await asyncio.sleep(0.001)
        await workshop.finalizer.close(0)
        assert (await running).kind is ResultKind.COMPLETED


@pytest.mark.parametrize("verb", ["ClaimJob", "Checkpoint", "Complete"])
async def test_a_store_that_stays_away_is_unavailable_and_never_an_exception(
    verb: str, tmp_path: Path
) -> None:
    class Away(SqliteOutbox):
        async def apply(self, command: Any) -> Answer:
            if type(command).__name__ == verb:
                raise StoreUnavailableError
            return await super().apply(command)

    async with Workshop(tmp_path) as workshop:
        job = await workshop.admitted()
        workshop.finalizer._outbox = Away(workshop.store)
        result = await workshop.run(job)
        left = await workshop.job(job)
        if verb == "Checkpoint":  # the release could still be recorded
            assert (result.kind, left.attempt_count) == (ResultKind.DEFERRED, 0)
        else:
            assert result.kind is ResultKind.UNAVAILABLE
        assert result.code is FailureCode.ENVIRONMENT_STORE
        assert not left.terminal and left.reconcile_after_at is not None


async def test_a_fault_of_our_own_is_told_by_its_class_and_answered(tmp_path: Path) -> None:
    class Wrong(SqliteOutbox):
        async def apply(self, command: Any) -> Answer:
            raise ZeroDivisionError("canary")

    async with Workshop(tmp_path) as workshop:
        job = await workshop.admitted()
        workshop.finalizer._outbox = Wrong(workshop.store)
        assert (await workshop.run(job)).kind is ResultKind.UNAVAILABLE
