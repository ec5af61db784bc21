"""The steps of a run: stored before the next begins, and never run again once stored."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from listen_finalization.domain.codes import EffectCode, EffectState, FailureCode, Step
from listen_finalization.domain.commands import Complete
from listen_finalization.domain.content import Enrichment, Memory
from listen_finalization.domain.job import Job
from listen_finalization.errors import StepFailedError, StoreBrokenError
from listen_finalization.finalizer import ResultKind
from listen_finalization.outbox.sqlite import SqliteOutbox
from listen_finalization.processing.protocol import Request
from listen_finalization.testing.clock import FakeClock
from listen_finalization.testing.processor import (
    FakeProcessor,
    fails,
    gives,
    in_turn,
    oversized,
    record,
    remembered,
)
from listen_finalization.testing.workshop import FakeSender, Workshop

ENRICHED = Enrichment("Title", "Overview", "work")
DISCARDING = replace(ENRICHED, discard=True)


async def effects(workshop: Workshop, job: Job) -> list[tuple[Step, EffectState, Any]]:
    return [(e.step, e.state, e.code) for e in (await workshop.job(job)).effects]


async def test_each_step_sees_what_was_stored_before_it_began(tmp_path: Path) -> None:
    seen: list[set[tuple[str, int]]] = []

    class Looking(FakeSender):
        async def send(self, delivery: Any) -> Any:
            seen.append({(s, c) for s, c in await workshop.conversations.results(job.job_id)})
            return await super().send(delivery)

    async with Workshop(tmp_path, sender=Looking()) as workshop:
        job = await workshop.admitted(subscribers=1)
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        assert seen == [{("enrich", 0), ("memories", 0)}]
        assert await workshop.conversations.results(job.job_id) == {}


async def test_a_stored_record_is_not_made_again_when_a_later_step_fails(tmp_path: Path) -> None:
    clock = FakeClock()
    processor = FakeProcessor(memories=in_turn(fails(StepFailedError), remembered))
    async with Workshop(tmp_path, processor, clock=clock) as workshop:
        job = await workshop.admitted()
        assert (await workshop.run(job)).kind is ResultKind.FAILED
        clock.advance(10)
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        assert (processor.count("enrich"), processor.count("memories")) == (1, 2)


async def test_content_that_came_later_does_not_mix_into_stored_results(tmp_path: Path) -> None:
    clock = FakeClock()
    processor = FakeProcessor(memories=in_turn(fails(StepFailedError), remembered))
    async with Workshop(tmp_path, processor, clock=clock) as workshop:
        job = await workshop.admitted()
        await workshop.run(job)
        before = await workshop.job(job)
        await workshop.spoken(text="Something that was said later on.")
        clock.advance(10)
        await workshop.run(job)
        assert (await workshop.job(job)).content_version == before.content_version


@pytest.mark.parametrize("force", [False, True])
async def test_a_discard_ends_the_job_unless_processing_was_forced(
    force: bool, tmp_path: Path
) -> None:
    processor = FakeProcessor(enrich=gives(DISCARDING))
    async with Workshop(tmp_path, processor) as workshop:
        job = await workshop.admitted(subscribers=1, force_process=force)
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        told = await workshop.record()
        assert (told.conversation.status, told.conversation.discarded) == ("completed", not force)
        assert processor.count("memories") == len(workshop.sender.sent) == int(force)
        code = EffectCode.STORED if force else EffectCode.DISCARDED
        assert (await effects(workshop, job))[0] == (Step.ENRICH, EffectState.DONE, code)
        assert told.structured is not None and told.structured["title"] == "Title"


async def test_a_discard_stays_one_when_the_run_is_repeated(tmp_path: Path) -> None:
    processor = FakeProcessor(enrich=gives(DISCARDING))
    async with Workshop(tmp_path, processor, clock=FakeClock()) as workshop:
        job = await workshop.admitted()
        workshop.finalizer._outbox = without_settlement(workshop)
        await workshop.run(job)
        workshop.finalizer._outbox = workshop.store.outbox
        workshop.liveness.die()
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        assert (await workshop.conversation()).discarded
        assert processor.count() == 1


def without_settlement(workshop: Workshop) -> Any:
    class Dying(SqliteOutbox):
        async def apply(self, command: Any) -> Any:
            if isinstance(command, Complete):
                raise StoreBrokenError
            return await super().apply(command)

    return Dying(workshop.store)


async def test_nothing_to_tell_ends_both_and_is_noted_as_empty(tmp_path: Path) -> None:
    processor = FakeProcessor(enrich=gives(None))
    async with Workshop(tmp_path, processor, clock=FakeClock()) as workshop:
        job = await workshop.admitted(subscribers=1)
        workshop.finalizer._outbox = without_settlement(workshop)
        await workshop.run(job)
        assert await effects(workshop, job) == [(Step.ENRICH, EffectState.DONE, EffectCode.EMPTY)]
        workshop.finalizer._outbox = workshop.store.outbox
        workshop.liveness.die()
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        told = await workshop.record()
        assert (told.conversation.status, told.conversation.discarded) == ("completed", False)
        assert told.structured is None and told.memories == ()
        assert (processor.count(), workshop.sender.sent) == (1, [])


@pytest.mark.parametrize("value", [Enrichment("", ""), Enrichment("Only a title", "")])
async def test_an_empty_or_partial_record_is_a_record(value: Enrichment, tmp_path: Path) -> None:
    async with Workshop(tmp_path, FakeProcessor(enrich=gives(value))) as workshop:
        job = await workshop.admitted()
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        told = await workshop.record()
        assert told.structured is not None and told.structured["title"] == value.title


async def test_a_record_out_of_bounds_is_shortened_and_the_job_completes(tmp_path: Path) -> None:
    async with Workshop(tmp_path, FakeProcessor(enrich=oversized)) as workshop:
        job = await workshop.admitted()
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        assert (await effects(workshop, job))[0][2] is EffectCode.RESULT_SHORTENED
        told = await workshop.record()
        assert len(json.dumps(told.structured)) < 70_000


@pytest.mark.parametrize("step", ["enrich", "memories"])
@pytest.mark.parametrize("odd", [5, "text", {"a": 1}, [5], object()])
async def test_an_odd_result_of_any_step_is_never_a_silent_completion(
    step: str, odd: Any, tmp_path: Path
) -> None:
    processor = FakeProcessor(**{step: gives(odd)})  # type: ignore[arg-type]
    async with Workshop(tmp_path, processor) as workshop:
        job = await workshop.admitted()
        result = await workshop.run(job)
        assert result.code is FailureCode.PROCESSOR_INVALID_RESULT
        assert (await workshop.conversation()).status == "processing"


async def test_text_that_no_store_can_hold_does_not_stop_a_job(tmp_path: Path) -> None:
    lone = "\ud800 half a letter"
    processor = FakeProcessor(
        enrich=gives(Enrichment(lone, lone)), memories=gives([Memory(lone, (lone,))])
    )
    async with Workshop(tmp_path, processor) as workshop:
        job = await workshop.admitted(subscribers=1)
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        json.loads(workshop.sender.sent[0].body)


async def test_memories_of_two_runs_are_the_same_rows(tmp_path: Path) -> None:
    async with Workshop(tmp_path) as workshop:
        job = await workshop.admitted()
        await workshop.run(job)
        await workshop.spoken(text="We ship on Friday!!!")
        again = await workshop.admitted()
        await workshop.run(again)
        texts = [memory.text for memory in (await workshop.record()).memories]
        assert len(texts) == len(set(texts)) == 2


async def test_a_step_is_told_what_it_may_know_and_how_long_it_has(tmp_path: Path) -> None:
    asked: list[Request] = []

    def enrich(request: Request) -> Enrichment:
        asked.append(request)
        return record(request)

    async with Workshop(tmp_path, FakeProcessor(enrich=enrich), run_timeout=50) as workshop:
        job = await workshop.admitted(context={"title": "Standup"}, force_process=True)
        await workshop.run(job)
    (request,) = asked
    assert (request.job_id, request.claim, request.keys) == (job.job_id, 1, None)
    assert request.force_process and 40 < request.timeout <= 50
    assert request.content.calendar_context == {"title": "Standup"}
    assert "Friday" not in repr(request)


async def test_a_run_on_the_users_keys_gets_them_and_their_repr_tells_nothing(
    tmp_path: Path,
) -> None:
    asked: list[Request] = []

    def memories(request: Request) -> list[Memory]:
        asked.append(request)
        return []

    processor = FakeProcessor(memories=memories)
    async with Workshop(tmp_path, processor) as workshop:
        job = await workshop.admitted(byok=True, holds_keys=True)
        result = await workshop.run(job, keys={"openai": "canary-key"})
        assert result.kind is ResultKind.COMPLETED
    assert asked[0].keys == {"openai": "canary-key"}
    assert "canary" not in repr(asked)
    assert {call.credential for call in processor.calls} == {"user"}
