"""The verbs of a run: claim, checkpoint, complete, fail and release."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from listen_finalization.domain.codes import (
    Actor,
    ConversationStatus,
    EffectState,
    FailureCode,
    Outcome,
    RefusalCode,
    ReleaseCause,
    Status,
    Step,
    Verb,
)
from listen_finalization.domain.commands import Checkpoint, Complete, Fail, Release
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import Effect
from listen_finalization.outbox.conformance.subject import (
    CONVERSATION,
    POLICY,
    UID,
    Subject,
    admitted,
    becomes,
    claim_of,
    conversation,
    decided,
    later,
    leased,
    moved,
    reclaimed,
    refused,
    row,
)


async def claim_takes_the_lease_and_counts_the_attempt(subject: Subject) -> None:
    job = await admitted(subject)
    await becomes(
        subject,
        job,
        claim_of(job, task_retry=1),
        Verb.CLAIM,
        Actor.WORKER,
        status=Status.LEASED,
        lease_epoch=1,
        claim_id="claim-1",
        attempt_count=1,
        handovers=0,
        content_version=1,
        last_task_retry=1,
        leased_at=0,
        lease_expires_at=POLICY.lease,
        reconcile_after_at=POLICY.lease,
    )


async def contending_claims_have_one_winner(subject: Subject) -> None:
    job = await admitted(subject)
    claims = [claim_of(job, f"claim-{number}") for number in range(64)]
    answers = await asyncio.gather(*map(subject.outbox.apply, claims))
    winners = [answer for answer in answers if isinstance(answer, Decision)]
    assert [winner.job for winner in winners] == [await row(subject, job.job_id)]
    codes = {getattr(answer, "code", None) for answer in answers} - {None}
    assert codes == {RefusalCode.LEASE_HELD}


async def claim_is_refused_in_the_stated_order(subject: Subject) -> None:
    job = await admitted(subject, holds_keys=True)
    ask = claim_of(job)
    unknown = await subject.outbox.apply(replace(ask, job_id="none"))
    assert getattr(unknown, "code", None) is RefusalCode.JOB_UNKNOWN
    foreign = replace(ask, uid="stranger", conversation_id=CONVERSATION, generation=9)
    await refused(subject, foreign, RefusalCode.WRONG_IDENTITY, job=job)
    await refused(subject, replace(ask, generation=2), RefusalCode.STALE_GENERATION, job=job)
    await refused(subject, ask, RefusalCode.KEYS_REQUIRED, job=job)
    owner = await moved(subject, replace(ask, holds_keys=True))
    await refused(subject, claim_of(owner, "claim-2"), RefusalCode.LEASE_HELD, job=owner)


async def expired_lease_is_taken_over_and_its_owner_refused(subject: Subject) -> None:
    first = await leased(subject)
    subject.advance(POLICY.lease)
    second = await moved(subject, claim_of(first, "claim-2"))
    assert (second.lease_epoch, second.attempt_count) == (2, 2)
    for command in (
        Checkpoint(first.claim),
        Complete(first.claim),
        Fail(first.claim, FailureCode.PROVIDER_ERROR),
        Release(first.claim, ReleaseCause.SHUTDOWN, FailureCode.SHUTDOWN),
    ):
        await refused(subject, command, RefusalCode.OWNERSHIP_LOST, job=second)


async def lease_of_a_process_proved_dead_is_taken_over_at_once(subject: Subject) -> None:
    first = await leased(subject)
    alive = claim_of(first, "claim-2", dead_claim="claim-0")
    await refused(subject, alive, RefusalCode.LEASE_HELD, job=first)
    await moved(subject, replace(alive, dead_claim="claim-1"))


async def spent_claim_id_never_claims_again(subject: Subject) -> None:
    job = await leased(subject)
    queued = await moved(subject, Fail(job.claim, FailureCode.PROVIDER_ERROR))
    await refused(subject, claim_of(queued, "claim-1"), RefusalCode.CLAIM_LOST, job=queued)


async def late_owner_completes_while_nobody_reclaimed(subject: Subject) -> None:
    job = await leased(subject)
    subject.advance(POLICY.lease * 100)
    done = await moved(subject, Complete(job.claim))
    assert (done.status, done.outcome) == (Status.COMPLETED, Outcome.SUCCESS)


async def renewal_extends_the_lease_and_leaves_no_history(subject: Subject) -> None:
    job = await leased(subject)
    subject.advance(POLICY.lease // 3)
    renewed = await moved(subject, Checkpoint(job.claim))
    end = later(renewed.updated_at, POLICY.lease)
    assert renewed == replace(
        job, updated_at=renewed.updated_at, lease_expires_at=end, reconcile_after_at=end
    )
    assert renewed.updated_at >= job.updated_at + POLICY.lease // 3
    assert await row(subject, job.job_id) == renewed


async def complete_ends_job_and_conversation_together(subject: Subject) -> None:
    job = await leased(subject)
    await becomes(
        subject,
        job,
        Complete(job.claim, actor=Actor.PUSHER),
        Verb.COMPLETE,
        Actor.PUSHER,
        status=Status.COMPLETED,
        outcome=Outcome.SUCCESS,
        completed_at=0,
    )
    after = await conversation(subject)
    assert (after.status, after.discarded) == (ConversationStatus.COMPLETED, False)


async def discarded_result_ends_terminal_too(subject: Subject) -> None:
    job = await leased(subject)
    done = await moved(subject, Complete(job.claim, discard=True))
    assert done.outcome is Outcome.SUCCESS
    after = await conversation(subject)
    assert (after.status, after.discarded) == (ConversationStatus.COMPLETED, True)


async def complete_waits_for_open_deliveries(subject: Subject) -> None:
    job = await leased(subject)
    sent = (Effect(Step.FANOUT, EffectState.SENT, "destination"),)
    after = await moved(subject, Checkpoint(job.claim, effects=sent))
    await refused(subject, Complete(job.claim), RefusalCode.DELIVERIES_OPEN, job=after)


async def failed_attempt_waits_its_back_off(subject: Subject) -> None:
    job = await leased(subject)
    await becomes(
        subject,
        job,
        Fail(job.claim, FailureCode.PROVIDER_ERROR),
        Verb.FAIL,
        Actor.WORKER,
        code=FailureCode.PROVIDER_ERROR,
        status=Status.QUEUED,
        failure_code=FailureCode.PROVIDER_ERROR,
        reconcile_after_at=POLICY.backoff,
    )


async def final_failure_buries_job_and_conversation_together(subject: Subject) -> None:
    job = await leased(subject)
    for claim in ("claim-2", "claim-3"):
        queued = await moved(subject, Fail(job.claim, FailureCode.PROVIDER_ERROR))
        job = await reclaimed(subject, queued, claim)
    await becomes(
        subject,
        job,
        Fail(job.claim, FailureCode.PROVIDER_REFUSED),
        Verb.FAIL,
        Actor.WORKER,
        code=FailureCode.PROVIDER_REFUSED,
        status=Status.DEAD_LETTER,
        failure_code=FailureCode.PROVIDER_REFUSED,
        outcome=Outcome.FAILED,
    )
    after = await conversation(subject)
    assert (after.status, after.discarded) == (ConversationStatus.FAILED, True)


async def last_retry_of_the_queue_is_the_final_attempt(subject: Subject) -> None:
    job = await leased(subject)
    last = Fail(job.claim, FailureCode.PROVIDER_ERROR, task_retry=POLICY.max_attempts - 1)
    assert (await moved(subject, last)).status is Status.DEAD_LETTER


async def claim_with_a_spent_budget_buries_a_lost_worker(subject: Subject) -> None:
    job = await leased(subject)
    for claim in ("claim-2", "claim-3"):
        job = await reclaimed(subject, job, claim)
    subject.advance(POLICY.lease)
    dead = await moved(subject, claim_of(job, "claim-4"))
    assert (dead.status, dead.failure_code) == (Status.DEAD_LETTER, FailureCode.WORKER_LOST)
    assert (await conversation(subject)).status is ConversationStatus.FAILED


async def shutdown_gives_the_attempt_back(subject: Subject) -> None:
    job = await leased(subject)
    await becomes(
        subject,
        job,
        Release(job.claim, ReleaseCause.SHUTDOWN, FailureCode.SHUTDOWN),
        Verb.RELEASE,
        Actor.WORKER,
        code=FailureCode.SHUTDOWN,
        status=Status.QUEUED,
        failure_code=FailureCode.SHUTDOWN,
        attempt_count=0,
        releases=1,
        reconcile_after_at=0,
    )


async def environment_fault_mints_a_generation_after_the_delay(subject: Subject) -> None:
    job = await leased(subject)
    fault = Release(
        job.claim, ReleaseCause.ENVIRONMENT, FailureCode.ENVIRONMENT_PROVIDER, delay=7_000_000
    )
    await becomes(
        subject,
        job,
        fault,
        Verb.RELEASE,
        Actor.WORKER,
        code=FailureCode.ENVIRONMENT_PROVIDER,
        status=Status.QUEUED,
        failure_code=FailureCode.ENVIRONMENT_PROVIDER,
        attempt_count=0,
        releases=1,
        handovers=1,
        dispatch_generation=2,
        dispatched_at=0,
        reconcile_after_at=7_000_000 + POLICY.handover,
    )


async def released_byok_job_waits_for_keys(subject: Subject) -> None:
    job = await admitted(subject, holds_keys=True)
    job = await moved(subject, claim_of(job, holds_keys=True, actor=Actor.PUSHER))
    rejected = Release(
        job.claim, ReleaseCause.KEYS_REJECTED, FailureCode.KEYS_REJECTED, actor=Actor.PUSHER
    )
    await becomes(
        subject,
        job,
        rejected,
        Verb.RELEASE,
        Actor.PUSHER,
        code=FailureCode.KEYS_REJECTED,
        status=Status.BLOCKED_BYOK,
        failure_code=FailureCode.KEYS_REJECTED,
        attempt_count=0,
        releases=1,
    )


async def owner_whose_conversation_went_is_fenced(subject: Subject) -> None:
    job = await leased(subject)
    assert await subject.conversations.delete(UID, CONVERSATION)
    renewed = await decided(subject, Checkpoint(job.claim))
    assert renewed.job is not None
    assert renewed.job.status is Status.LEASED
    pending = (Effect(Step.ENRICH, EffectState.PENDING),)
    fenced = await moved(subject, Checkpoint(job.claim, effects=pending))
    assert (fenced.status, fenced.outcome) == (Status.COMPLETED, Outcome.FENCED)
    assert (await conversation(subject)).status is ConversationStatus.PROCESSING


async def unknown_jobs_are_refused_by_every_verb_of_an_owner(subject: Subject) -> None:
    claim = replace((await leased(subject)).claim, job_id="none")
    for command in (Checkpoint(claim), Complete(claim), Fail(claim, FailureCode.PROVIDER_ERROR)):
        await refused(subject, command, RefusalCode.OWNERSHIP_LOST)
