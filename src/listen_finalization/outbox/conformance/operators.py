"""The verbs of operators: evict, replay and resend."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from listen_finalization.domain.codes import (
    Actor,
    ConversationStatus,
    EffectCode,
    EffectState,
    FailureCode,
    RefusalCode,
    Status,
    Step,
    Verb,
)
from listen_finalization.domain.commands import (
    Checkpoint,
    Complete,
    Evict,
    Fail,
    Replay,
    Resend,
)
from listen_finalization.domain.job import Effect, Job
from listen_finalization.outbox.conformance.subject import (
    CONVERSATION,
    POLICY,
    UID,
    Subject,
    admitted,
    becomes,
    claim_of,
    conversation,
    leased,
    moved,
    refused,
    row,
)


async def _buried(subject: Subject, *, byok: bool = False) -> Job:
    job = await admitted(subject, holds_keys=byok)
    job = await moved(subject, claim_of(job, holds_keys=byok))
    final = Fail(job.claim, FailureCode.PROVIDER_ERROR, task_retry=POLICY.max_attempts - 1)
    return await moved(subject, final)


async def evicted_owner_loses_the_lease_and_keeps_the_attempt(subject: Subject) -> None:
    job = await leased(subject)
    stale = Evict(job.job_id, 1, 2, "request-1")
    await refused(subject, stale, RefusalCode.STALE_GENERATION, job=job)
    await becomes(
        subject,
        job,
        replace(stale, epoch=1),
        Verb.EVICT,
        Actor.OPERATOR,
        code=FailureCode.EVICTED,
        status=Status.QUEUED,
        failure_code=FailureCode.EVICTED,
        dispatch_generation=2,
        dispatched_at=0,
        claim_id="request-1",
        reconcile_after_at=0,
    )
    after = await row(subject, job.job_id)
    await refused(subject, Complete(job.claim), RefusalCode.OWNERSHIP_LOST, job=after)


async def replay_opens_a_dead_letter_with_a_new_budget(subject: Subject) -> None:
    dead = await _buried(subject)
    await becomes(
        subject,
        dead,
        Replay(dead.job_id, 1, "request-1"),
        Verb.REPLAY,
        Actor.OPERATOR,
        status=Status.QUEUED,
        dispatch_generation=2,
        dispatched_at=0,
        claim_id="request-1",
        attempt_count=0,
        handovers=1,
        replay_count=1,
        failure_code=None,
        outcome=None,
        content_version=None,
        reconcile_after_at=POLICY.handover,
    )
    after = await conversation(subject)
    assert (after.status, after.discarded) == (ConversationStatus.PROCESSING, False)


async def replayed_byok_job_waits_for_keys(subject: Subject) -> None:
    dead = await _buried(subject, byok=True)
    after = await moved(subject, Replay(dead.job_id, 1, "request-1"))
    assert (after.status, after.reconcile_after_at) == (Status.BLOCKED_BYOK, None)


async def two_operators_cannot_both_replay(subject: Subject) -> None:
    dead = await _buried(subject)
    replays = [Replay(dead.job_id, 1, f"request-{number}") for number in range(16)]
    answers = await asyncio.gather(*map(subject.outbox.apply, replays))
    codes = [getattr(answer, "code", None) for answer in answers]
    assert codes.count(None) == 1
    assert codes.count(RefusalCode.WRONG_STATUS) == 15
    assert (await row(subject, dead.job_id)).replay_count == 1


async def replay_refuses_everything_but_the_dead_letter_shown(subject: Subject) -> None:
    job = await leased(subject)
    await refused(subject, Replay(job.job_id, 1, "r"), RefusalCode.LEASE_HELD, job=job)
    done = await moved(subject, Complete(job.claim))
    await refused(subject, Replay(job.job_id, 1, "r"), RefusalCode.TERMINAL, job=done)


async def replay_refuses_a_stale_view_and_a_changed_conversation(subject: Subject) -> None:
    dead = await _buried(subject)
    await refused(subject, Replay(dead.job_id, 2, "r"), RefusalCode.STALE_GENERATION, job=dead)
    await subject.set_conversation(UID, CONVERSATION, {"status": "in_progress"})
    changed = RefusalCode.CONVERSATION_CHANGED
    await refused(subject, Replay(dead.job_id, 1, "r"), changed, job=dead)
    await subject.remove_conversation(UID, CONVERSATION)
    gone = RefusalCode.CONVERSATION_NOT_FOUND
    await refused(subject, Replay(dead.job_id, 1, "r"), gone, job=dead)


async def dropped_delivery_is_resent_once_and_its_result_noted(subject: Subject) -> None:
    job = await leased(subject)
    dropped = Effect(Step.FANOUT, EffectState.DROPPED, "destination", EffectCode.HTTP_4XX, 1)
    await moved(subject, Checkpoint(job.claim, effects=(dropped,)))
    done = await moved(subject, Complete(job.claim))
    resend = Resend(job.job_id, "destination", "request-1")
    sent = replace(dropped, state=EffectState.SENT, tries=2)
    taken = await becomes(
        subject,
        done,
        resend,
        Verb.RESEND,
        Actor.OPERATOR,
        claim_id="request-1",
        effects=(sent,),
    )
    rival = replace(resend, request_id="request-2")
    await refused(subject, rival, RefusalCode.DELIVERY_NOT_DROPPED, job=taken)
    told = replace(sent, state=EffectState.DONE, code=EffectCode.HTTP_2XX)
    await becomes(
        subject,
        taken,
        replace(resend, result=told),
        Verb.RESEND,
        Actor.OPERATOR,
        effects=(told,),
    )


async def delivery_that_arrived_is_not_resent(subject: Subject) -> None:
    job = await leased(subject)
    arrived = Effect(Step.FANOUT, EffectState.DONE, "destination", EffectCode.HTTP_2XX, 1)
    await moved(subject, Checkpoint(job.claim, effects=(arrived,)))
    done = await moved(subject, Complete(job.claim))
    for destination in ("destination", "unknown"):
        resend = Resend(job.job_id, destination, "request-1")
        await refused(subject, resend, RefusalCode.DELIVERY_NOT_DROPPED, job=done)
