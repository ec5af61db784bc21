"""Step results, memories and the published record: content beside the conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from listen_finalization.domain.codes import (
    Actor,
    EffectState,
    FailureCode,
    PurgeCause,
    Status,
    Step,
)
from listen_finalization.domain.commands import (
    Checkpoint,
    Complete,
    Fail,
    Fence,
    Purge,
    StepResult,
)
from listen_finalization.domain.content import Memory
from listen_finalization.domain.job import Effect, Job
from listen_finalization.outbox.conformance.subject import (
    CONVERSATION,
    POLICY,
    UID,
    Subject,
    admit,
    claim_of,
    leased,
    moved,
    record,
    row,
    talk,
)

_RECORD = '{"title":"Ship","overview":"We ship \u2603."}'
_ENRICHED = (Effect(Step.ENRICH, EffectState.DONE),)


async def _stored(subject: Subject) -> Job:
    job = await leased(subject)
    results = (StepResult(Step.ENRICH, _RECORD), StepResult(Step.MEMORIES, "[]", 3))
    return await moved(subject, Checkpoint(job.claim, effects=_ENRICHED, results=results))


async def stored_steps_are_read_back_and_survive_a_restart(subject: Subject) -> None:
    job = await _stored(subject)
    assert job.effects == _ENRICHED
    await subject.restart()
    expected = {(Step.ENRICH, 0): _RECORD, (Step.MEMORIES, 3): "[]"}
    assert await subject.conversations.results(job.job_id) == expected
    assert await row(subject, job.job_id) == job


async def stored_step_is_replaced_by_a_later_answer(subject: Subject) -> None:
    job = await leased(subject)
    for payload in ("[1]", "[2]"):
        subject.advance(1)
        pending = (Effect(Step.ENRICH, EffectState.PENDING),)
        chunk = (StepResult(Step.ENRICH, payload, 1),)
        await moved(subject, Checkpoint(job.claim, effects=pending, results=chunk))
    assert await subject.conversations.results(job.job_id) == {(Step.ENRICH, 1): "[2]"}


async def final_effect_is_never_taken_back(subject: Subject) -> None:
    job = await _stored(subject)
    subject.advance(1)
    back = Checkpoint(job.claim, effects=(Effect(Step.ENRICH, EffectState.PENDING),))
    assert (await moved(subject, back)).effects == _ENRICHED


async def complete_publishes_the_stored_record_and_drops_the_steps(subject: Subject) -> None:
    job = await _stored(subject)
    await moved(subject, Complete(job.claim))
    found = await record(subject)
    assert found.structured == {"title": "Ship", "overview": "We ship \u2603."}
    assert await subject.conversations.results(job.job_id) == {}


async def complete_without_a_stored_record_keeps_the_published_one(subject: Subject) -> None:
    job = await _stored(subject)
    await moved(subject, Complete(job.claim))
    await talk(subject, number=2)
    second = await moved(subject, admit())
    second = await moved(subject, claim_of(second, "claim-2"))
    await moved(subject, Complete(second.claim))
    assert (await record(subject)).structured == {"title": "Ship", "overview": "We ship \u2603."}


Settling = Callable[[Subject, Job], Awaitable[object]]


async def _bury(subject: Subject, job: Job) -> object:
    return await moved(
        subject,
        Fail(job.claim, FailureCode.PROVIDER_ERROR, task_retry=POLICY.max_attempts - 1),
    )


async def _fence(subject: Subject, job: Job) -> object:
    await subject.set_conversation(UID, CONVERSATION, {"status": "completed"})
    return await moved(subject, Fence(job.job_id, Actor.SWEEP, claim=job.claim))


async def _purge(subject: Subject, job: Job) -> object:
    return await subject.outbox.apply(Purge(job.job_id, PurgeCause.ACCOUNT))


async def _delete(subject: Subject, _: Job) -> object:
    return await subject.conversations.delete(UID, CONVERSATION)


async def dead_letter_drops_the_steps(subject: Subject) -> None:
    await _drops(subject, _bury)


async def fence_drops_the_steps(subject: Subject) -> None:
    await _drops(subject, _fence)


async def purge_drops_the_steps(subject: Subject) -> None:
    await _drops(subject, _purge)


async def deletion_drops_the_steps(subject: Subject) -> None:
    await _drops(subject, _delete)


async def _drops(subject: Subject, settle: Settling) -> None:
    job = await _stored(subject)
    await settle(subject, job)
    assert await subject.conversations.results(job.job_id) == {}
    assert (await record(subject)).structured is None


async def failed_attempt_keeps_the_steps(subject: Subject) -> None:
    job = await _stored(subject)
    queued = await moved(subject, Fail(job.claim, FailureCode.PROVIDER_ERROR))
    assert (queued.status, queued.effects) == (Status.QUEUED, _ENRICHED)
    kept = await subject.conversations.results(job.job_id)
    assert kept[Step.ENRICH, 0] == _RECORD


async def memories_are_stored_once_however_often_they_come(subject: Subject) -> None:
    job = await leased(subject)
    memory = Memory("Ada ships on Friday", ("segment-1",))
    shouted = Memory("ADA  ships on friday", ("segment-2",))
    for effect in (EffectState.PENDING, EffectState.DONE):
        subject.advance(1)
        done = (Effect(Step.MEMORIES, effect),)
        told = Checkpoint(job.claim, effects=done, memories=(memory, shouted, memory))
        await moved(subject, told)
    assert (await record(subject)).memories == (memory,)


async def refused_checkpoint_writes_no_content(subject: Subject) -> None:
    first = await leased(subject)
    subject.advance(POLICY.lease)
    await moved(subject, claim_of(first, "claim-2"))
    late = Checkpoint(
        first.claim,
        effects=_ENRICHED,
        results=(StepResult(Step.ENRICH, _RECORD),),
        memories=(Memory("late"),),
    )
    await subject.outbox.apply(late)
    assert await subject.conversations.results(first.job_id) == {}
    assert (await record(subject)).memories == ()
