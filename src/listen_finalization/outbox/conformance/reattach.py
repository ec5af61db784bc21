"""Admission over what an earlier life of the conversation left behind."""

from __future__ import annotations

from listen_finalization.domain.codes import (
    Actor,
    ConversationStatus,
    EffectState,
    FailureCode,
    PurgeCause,
    RefusalCode,
    Status,
    Step,
    Verb,
)
from listen_finalization.domain.commands import Checkpoint, Complete, Fail, Purge, StepResult
from listen_finalization.domain.identity import job_id
from listen_finalization.domain.job import Effect, Job
from listen_finalization.outbox.conformance.subject import (
    CONVERSATION,
    POLICY,
    UID,
    Subject,
    admit,
    becomes,
    claim_of,
    conversation,
    decided,
    leased,
    moved,
    reclaimed,
    refused,
    row,
    talk,
)


async def _half_done(subject: Subject) -> Job:
    job = await leased(subject)
    stored = Checkpoint(
        job.claim,
        effects=(Effect(Step.ENRICH, EffectState.DONE),),
        results=(StepResult(Step.ENRICH, '{"title":"old"}'),),
    )
    return await moved(subject, stored)


async def open_row_at_the_id_is_reattached_and_its_owner_fenced(subject: Subject) -> None:
    old = await _half_done(subject)
    await subject.remove_conversation(UID, CONVERSATION)
    await talk(subject)
    after = await becomes(
        subject,
        old,
        admit(),
        Verb.ADMIT,
        Actor.CUSTOMER,
        status=Status.QUEUED,
        dispatch_generation=2,
        dispatched_at=0,
        reconcile_after_at=POLICY.handover,
        handovers=1,
        attempt_count=0,
        content_version=None,
        effects=(),
    )
    assert (await conversation(subject)).job_id == after.job_id
    assert await subject.conversations.results(old.job_id) == {}
    await refused(subject, Complete(old.claim), RefusalCode.OWNERSHIP_LOST, job=after)
    assert await subject.job_count() == 1


async def terminal_row_at_the_id_moves_the_admission_to_the_next_revision(
    subject: Subject,
) -> None:
    done = await moved(subject, Complete((await leased(subject)).claim))
    await subject.remove_conversation(UID, CONVERSATION)
    await talk(subject)
    second = await moved(subject, admit())
    assert second.job_id == job_id(UID, CONVERSATION, 2)
    assert await row(subject, done.job_id) == done


async def open_row_beyond_a_terminal_one_loses_its_stored_steps_too(subject: Subject) -> None:
    first = await leased(subject)
    await moved(subject, Complete(first.claim))
    await talk(subject, number=2)
    second = await moved(subject, admit())
    claimed = await moved(subject, claim_of(second, "claim-2"))
    stored = Checkpoint(
        claimed.claim,
        effects=(Effect(Step.ENRICH, EffectState.DONE),),
        results=(StepResult(Step.ENRICH, "{}"), StepResult(Step.ENRICH, "{}", 1)),
    )
    await moved(subject, stored)
    earlier = {
        "status": "in_progress",
        "finalization_job_id": first.job_id,
        "finalization_revision": 1,
    }
    await subject.set_conversation(UID, CONVERSATION, earlier)
    again = await moved(subject, admit())
    assert (again.job_id, again.dispatch_generation) == (second.job_id, 2)
    assert await subject.conversations.results(second.job_id) == {}


async def after_retention_the_conversation_answers(subject: Subject) -> None:
    done = await moved(subject, Complete((await leased(subject)).claim))
    await decided(subject, Purge(done.job_id, PurgeCause.ACCOUNT))
    await refused(subject, admit(), RefusalCode.CONVERSATION_SETTLED)
    await talk(subject, number=2)
    second = await moved(subject, admit())
    assert second.finalization_revision == 2


async def failed_conversation_answers_its_dead_letter(subject: Subject) -> None:
    job = await leased(subject)
    for claim in ("claim-2", "claim-3", None):
        job = await moved(subject, Fail(job.claim, FailureCode.PROVIDER_ERROR))
        job = await reclaimed(subject, job, claim) if claim else job
    assert job.status is Status.DEAD_LETTER
    await subject.conversations.content(UID, CONVERSATION)
    answer = await decided(subject, admit())
    assert (answer.job, answer.changed) == (job, False)
    assert (await conversation(subject)).status is ConversationStatus.FAILED


async def open_job_of_a_conversation_taken_away_is_fenced_by_admission(subject: Subject) -> None:
    await talk(subject)
    job = await moved(subject, admit())
    await subject.set_conversation(UID, CONVERSATION, {"status": "completed"})
    fenced = await decided(subject, admit())
    assert fenced.did is Verb.FENCE
    assert (await row(subject, job.job_id)).status is Status.COMPLETED
