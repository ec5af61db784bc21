"""Deliveries: proved before the first byte, noted as they come, each receiver on its own."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from listen_finalization.domain.codes import EffectCode, EffectState, Step
from listen_finalization.domain.commands import Checkpoint
from listen_finalization.domain.effect_key import delivery_id, idempotency_key
from listen_finalization.domain.job import Effect, Job
from listen_finalization.finalizer import ResultKind
from listen_finalization.outbox.sqlite import SqliteOutbox
from listen_finalization.processing.delivery import DeliveryResult, Destination
from listen_finalization.processing.fanout import NOTE_EVERY, Fanout
from listen_finalization.testing.clock import FakeClock
from listen_finalization.testing.workshop import FakeSender, Workshop


class Watching(SqliteOutbox):
    """Notes the checkpoints that say something of deliveries, and when."""

    def __init__(self, workshop: Workshop) -> None:
        super().__init__(workshop.store)
        self.notes: list[tuple[float, tuple[Effect, ...]]] = []

    async def apply(self, command: Any) -> Any:
        answer = await super().apply(command)
        if isinstance(command, Checkpoint):
            lines = tuple(e for e in command.effects if e.step is Step.FANOUT)
            if lines and lines[0].state is not EffectState.PENDING:
                self.notes.append((asyncio.get_running_loop().time(), lines))
        return answer


class Paced(FakeSender):
    """Takes its time with each destination: seconds by id."""

    def __init__(self, pace: dict[str, float], **codes: EffectCode) -> None:
        super().__init__(codes)
        self.pace = pace
        self.left: list[float] = []

    async def send(self, delivery: Any) -> DeliveryResult:
        self.left.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.pace.get(delivery.destination.id, 0))
        return await super().send(delivery)


def states(job: Job) -> dict[str | None, tuple[str, str | None]]:
    return {e.destination: (e.state, e.code) for e in job.deliveries}


async def watched(workshop: Workshop) -> Watching:
    outbox = Watching(workshop)
    workshop.finalizer._outbox = outbox
    return outbox


async def test_all_are_marked_sent_by_one_write_before_the_first_byte_leaves(
    tmp_path: Path,
) -> None:
    sender = Paced({})
    async with Workshop(tmp_path, sender=sender) as workshop:
        outbox = await watched(workshop)
        job = await workshop.admitted(subscribers=5)
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        at, marked = outbox.notes[0]
        assert [line.state for line in marked] == [EffectState.SENT] * 5
        assert all(left >= at for left in sender.left)
        assert len(outbox.notes) == 2


async def test_nothing_leaves_where_the_proof_fails(tmp_path: Path) -> None:
    class Losing(SqliteOutbox):
        async def apply(self, command: Any) -> Any:
            sent = isinstance(command, Checkpoint) and any(
                e.state is EffectState.SENT for e in command.effects
            )
            if sent:
                await workshop.conversations.delete("ada", "c1")
            return await super().apply(command)

    async with Workshop(tmp_path) as workshop:
        job = await workshop.admitted(subscribers=3)
        workshop.finalizer._outbox = Losing(workshop.store)
        assert (await workshop.run(job)).kind is ResultKind.FENCED
        assert workshop.sender.sent == []


async def test_results_are_noted_within_a_second_and_at_most_once_a_second(
    tmp_path: Path,
) -> None:
    pace = {"d0": 0.0, "d1": 0.3, "d2": 1.4, "d3": 1.6}
    async with Workshop(tmp_path, sender=Paced(pace)) as workshop:
        outbox = await watched(workshop)
        job = await workshop.admitted(subscribers=4)
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        start, *notes = outbox.notes
        assert [{line.destination for line in lines} for _, lines in notes] == [
            {"d0", "d1"},
            {"d2", "d3"},
        ]
        assert notes[0][0] - start[0] < NOTE_EVERY + 0.3
        assert notes[1][0] - notes[0][0] > 0.3


async def test_thirty_two_receivers_cost_two_writes(tmp_path: Path) -> None:
    async with Workshop(tmp_path) as workshop:
        outbox = await watched(workshop)
        job = await workshop.admitted(subscribers=32)
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        assert len(outbox.notes) == 2
        assert len(workshop.sender.sent) == 32
        assert set(states(await workshop.job(job)).values()) == {("done", "http_2xx")}


@pytest.mark.parametrize(
    ("code", "state", "calls"),
    [
        (EffectCode.HTTP_2XX, "done", 1),
        (EffectCode.HTTP_3XX, "dropped", 1),
        (EffectCode.HTTP_4XX, "dropped", 1),
        (EffectCode.ADDRESS_REFUSED, "dropped", 1),
        (EffectCode.HTTP_408, "dropped", 5),
        (EffectCode.HTTP_425, "dropped", 5),
        (EffectCode.HTTP_429, "dropped", 5),
        (EffectCode.HTTP_5XX, "dropped", 5),
        (EffectCode.TIMEOUT, "dropped", 5),
        (EffectCode.RESET, "dropped", 5),
    ],
)
async def test_a_result_is_final_or_owed_until_the_last_attempt_and_never_buries_the_job(
    code: EffectCode, state: str, calls: int, tmp_path: Path
) -> None:
    clock = FakeClock()
    sender = FakeSender({"d0": code})
    async with Workshop(tmp_path, sender=sender, clock=clock) as workshop:
        job = await workshop.admitted(subscribers=2)
        for _ in range(5):
            await workshop.run(job)
            clock.advance(100)
        ended = await workshop.job(job)
        assert states(ended) == {"d0": (state, code), "d1": ("done", "http_2xx")}
        assert (ended.outcome, sender.count("d0"), sender.count("d1")) == ("success", calls, 1)


async def test_every_attempt_carries_the_same_key_id_and_body(tmp_path: Path) -> None:
    clock = FakeClock()
    sender = FakeSender({"d0": EffectCode.HTTP_5XX})
    async with Workshop(tmp_path, sender=sender, clock=clock) as workshop:
        job = await workshop.admitted(subscribers=1)
        for _ in range(5):
            await workshop.run(job)
            clock.advance(100)
    assert {(s.idempotency_key, s.delivery_id) for s in sender.sent} == {
        (idempotency_key(job.job_id, "d0"), delivery_id(job.job_id, "d0"))
    }
    assert len({s.body for s in sender.sent}) == 1 and len(sender.sent) == 5
    told = json.loads(sender.sent[0].body)
    assert told["conversation_id"] == "c1" and "uid" not in told


async def test_a_destination_removed_meanwhile_is_dropped_as_gone(tmp_path: Path) -> None:
    clock = FakeClock()
    sender = FakeSender({"d0": EffectCode.HTTP_5XX})
    async with Workshop(tmp_path, sender=sender, clock=clock) as workshop:
        job = await workshop.admitted(subscribers=2)
        await workshop.run(job)
        await workshop.destinations.remove("ada", "d0")
        clock.advance(10)
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        assert states(await workshop.job(job))["d0"] == ("dropped", "destination_gone")
        assert sender.count("d0") == 1


async def test_one_added_after_the_plan_gets_nothing_of_this_revision(tmp_path: Path) -> None:
    clock = FakeClock()
    sender = FakeSender({"d0": EffectCode.HTTP_5XX})
    async with Workshop(tmp_path, sender=sender, clock=clock) as workshop:
        job = await workshop.admitted(subscribers=1)
        await workshop.run(job)
        await workshop.destinations.add("ada", "late", "https://late.example/")
        clock.advance(10)
        sender.codes.clear()
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        assert sender.count("late") == 0


async def test_a_sender_that_breaks_its_word_loses_no_other_result(tmp_path: Path) -> None:
    class Breaking(FakeSender):
        async def send(self, delivery: Any) -> DeliveryResult:
            if delivery.destination.id == "d1":
                raise ZeroDivisionError("canary")
            return await super().send(delivery)

    async with Workshop(tmp_path, sender=Breaking()) as workshop:
        job = await workshop.admitted(subscribers=3)
        assert (await workshop.run(job)).kind is ResultKind.FAILED
        assert states(await workshop.job(job)) == {
            "d0": ("done", "http_2xx"),
            "d1": ("pending", "protocol_error"),
            "d2": ("done", "http_2xx"),
        }


async def test_the_plan_of_a_reopened_job_leaves_out_what_the_ledger_names(
    tmp_path: Path,
) -> None:
    """Settled lines of an earlier life and new ones are together at most 32."""
    async with Workshop(tmp_path) as workshop:
        job = await workshop.admitted(subscribers=32)
        old = tuple(
            Effect(Step.FANOUT, EffectState.DONE, f"gone{n}", EffectCode.HTTP_2XX)
            for n in range(20)
        )
        fanout = Fanout(workshop.destinations, workshop.sender)
        kept = Effect(Step.FANOUT, EffectState.DONE, "d0", EffectCode.HTTP_2XX)
        planned = await fanout.planned(replace(job, effects=(*old, kept)))
        assert len(planned) == 11
        assert "d0" not in {line.destination for line in planned}


def test_a_destination_tells_neither_address_nor_secret() -> None:
    shown = repr(Destination("d0", "https://canary.example/", b"canary-secret-0123456789-abc"))
    assert "canary" not in shown
