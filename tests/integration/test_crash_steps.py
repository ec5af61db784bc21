"""A fault at every single write of a job: all settles, and no effect is doubled but by its key."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from listen_finalization.domain.codes import EffectCode
from listen_finalization.domain.job import Job
from listen_finalization.finalizer import ResultKind
from listen_finalization.testing.clock import FakeClock
from listen_finalization.testing.processor import Call, FakeProcessor, count
from listen_finalization.testing.workshop import FakeLiveness, FakeSender, Workshop

from .faulty import Faulty, Way
from .invariants import check
from .receivers import Received

WRITES = 6
"""Of an untroubled job: claim, record, memories and plan, all sent, results, completed."""


async def recovered(
    directory: Path, clock: FakeClock, first: FakeLiveness, job: Job
) -> tuple[FakeProcessor, FakeSender, int]:
    """Run the job by fresh processes, due time after due time, until it is settled."""
    processor, sender = FakeProcessor(), FakeSender()
    second = FakeLiveness(buried={first.name})
    async with Workshop(
        directory, processor, clock=clock, sender=sender, liveness=second
    ) as workshop:
        rounds = 0
        while not (present := await workshop.job(job)).terminal:
            rounds += 1
            assert rounds < 5
            if present.status == "queued":
                assert present.reconcile_after_at is not None
                clock.advance(max(present.reconcile_after_at - clock(), 0) / 1e6)
            await workshop.run(job)
        assert (await workshop.job(job)).outcome == "success"
    return processor, sender, rounds


def received(senders: list[FakeSender]) -> list[Received]:
    return [
        Received("", one.delivery_id, one.idempotency_key, str(hash(one.body)))
        for sender in senders
        for one in sender.sent
    ]


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("at", range(1, WRITES + 1))
async def test_a_fault_at_any_write_settles_and_pays_at_most_one_call_twice(
    at: int, way: Way, tmp_path: Path
) -> None:
    clock, living = FakeClock(), FakeLiveness()
    processor, sender = FakeProcessor(), FakeSender()
    async with Workshop(
        tmp_path, processor, clock=clock, sender=sender, liveness=living
    ) as workshop:
        job = await workshop.admitted(subscribers=3)
        faulty = Faulty(workshop.store.outbox, at, way)
        workshop.finalizer._outbox = faulty
        result = await workshop.run(job)
    assert faulty.writes >= at
    if faulty.dead:
        assert result.kind in (ResultKind.UNAVAILABLE, ResultKind.LOST)

    later, retried, rounds = await recovered(tmp_path, clock, living, job)
    calls: list[Call] = [*processor.calls, *later.calls]
    arrived = received([sender, retried])
    repeated = sum(n - 1 for n in Counter(one.delivery_id for one in arrived).values())
    print(
        f"\nwrite {at} {way}: first run {result.kind}, then {rounds} more;"
        f" provider calls {count(calls)} (ideal 2), deliveries repeated {repeated}"
    )
    check(tmp_path / "listen.db", max_attempts=5, calls=calls, received=arrived)
    assert count(calls) <= 3 if faulty.dead else count(calls) == 2
    assert len({one.delivery_id for one in arrived}) == 3
    assert repeated in ((0, 3) if faulty.dead else (0,))
    assert len({one.body for one in arrived}) == 1


async def test_an_untroubled_job_makes_six_writes_and_two_calls(tmp_path: Path) -> None:
    async with Workshop(tmp_path) as workshop:
        job = await workshop.admitted(subscribers=3)
        faulty = Faulty(workshop.store.outbox, 0, Way.REFUSED)
        workshop.finalizer._outbox = faulty
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        assert (faulty.writes, workshop.processor.count()) == (WRITES, 2)


async def test_a_second_life_sends_only_what_the_first_did_not_note(tmp_path: Path) -> None:
    """A destination that answered 2xx before the crash, and was noted, is not called again."""
    living, clock = FakeLiveness(), FakeClock()
    sender = FakeSender({"d1": EffectCode.HTTP_5XX})
    async with Workshop(tmp_path, clock=clock, sender=sender, liveness=living) as workshop:
        job = await workshop.admitted(subscribers=3)
        faulty = Faulty(workshop.store.outbox, WRITES, Way.DIES_BEFORE)
        workshop.finalizer._outbox = faulty
        await workshop.run(job)
    _, retried, _ = await recovered(tmp_path, clock, living, job)
    assert [one.destination.id for one in retried.sent] == ["d1"]
