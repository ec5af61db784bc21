"""The verbs of reconcilers, sweeps and sessions: nobody's own job."""

from __future__ import annotations

from dataclasses import replace

from listen_finalization.domain.codes import (
    Actor,
    ConversationStatus,
    FailureCode,
    Outcome,
    PurgeCause,
    RedispatchCause,
    RefusalCode,
    Status,
    Verb,
)
from listen_finalization.domain.commands import (
    Abandon,
    Checkpoint,
    Command,
    Complete,
    Fence,
    Park,
    Postpone,
    PresentKeys,
    Purge,
    Redispatch,
)
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import Instant
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
    held,
    leased,
    moved,
    reclaimed,
    refused,
    row,
)


async def due_job_is_handed_over_again_with_doubled_patience(subject: Subject) -> None:
    job = await admitted(subject)
    again = Redispatch(job.job_id, 1)
    await refused(subject, again, RefusalCode.NOT_DUE, job=job)
    subject.advance(POLICY.handover)
    await becomes(
        subject,
        job,
        again,
        Verb.REDISPATCH,
        Actor.RECONCILER,
        dispatch_generation=2,
        handovers=2,
        dispatched_at=0,
        reconcile_after_at=2 * POLICY.handover,
    )


async def paused_lane_mints_a_generation_without_a_hand_over(subject: Subject) -> None:
    job = await admitted(subject)
    lane = Redispatch(
        job.job_id,
        1,
        RedispatchCause.LANE,
        Actor.DISPATCHER,
        code=FailureCode.LANE_PAUSED,
        delay=60_000_000,
    )
    await becomes(
        subject,
        job,
        lane,
        Verb.REDISPATCH,
        Actor.DISPATCHER,
        code=FailureCode.LANE_PAUSED,
        failure_code=FailureCode.LANE_PAUSED,
        dispatch_generation=2,
        dispatched_at=0,
        reconcile_after_at=60_000_000 + POLICY.handover,
    )


async def redispatch_is_refused_where_somebody_else_must_act(subject: Subject) -> None:
    job = await leased(subject)
    await refused(subject, Redispatch(job.job_id, 2), RefusalCode.STALE_GENERATION, job=job)
    await refused(subject, Redispatch(job.job_id, 1), RefusalCode.LEASE_HELD, job=job)
    byok = await admitted(subject, "byok", holds_keys=True)
    await refused(subject, Redispatch(byok.job_id, 1), RefusalCode.KEYS_REQUIRED, job=byok)


async def expired_lease_is_requeued_by_the_reconciler(subject: Subject) -> None:
    job = await leased(subject)
    subject.advance(POLICY.lease)
    queued = await moved(subject, Redispatch(job.job_id, 1))
    assert (queued.status, queued.attempt_count) == (Status.QUEUED, 1)
    assert (queued.lease_expires_at, queued.leased_at) == (None, None)
    await refused(subject, Complete(job.claim), RefusalCode.OWNERSHIP_LOST, job=queued)


async def redispatch_with_a_spent_budget_buries(subject: Subject) -> None:
    job = await leased(subject)
    for claim in ("claim-2", "claim-3"):
        job = await reclaimed(subject, job, claim)
    subject.advance(POLICY.lease)
    dead = await moved(subject, Redispatch(job.job_id, 1))
    assert (dead.status, dead.outcome) == (Status.DEAD_LETTER, Outcome.FAILED)


async def unpicked_byok_job_is_parked(subject: Subject) -> None:
    job = await admitted(subject, holds_keys=True)
    await refused(subject, Park(job.job_id, 1), RefusalCode.NOT_DUE, job=job)
    subject.advance(POLICY.session_limit)
    await becomes(
        subject,
        job,
        Park(job.job_id, 1),
        Verb.PARK,
        Actor.RECONCILER,
        status=Status.BLOCKED_BYOK,
        dispatch_generation=2,
        dispatched_at=0,
    )
    other = await admitted(subject, "other")
    await refused(subject, Park(other.job_id, 1), RefusalCode.NOT_BYOK, job=other)


async def presented_keys_queue_a_blocked_job_for_the_session_limit(subject: Subject) -> None:
    job = await admitted(subject, byok=True)
    keys = PresentKeys(job.job_id, UID, CONVERSATION)
    stranger = replace(keys, uid="stranger")
    await refused(subject, stranger, RefusalCode.WRONG_IDENTITY, job=job)
    await becomes(
        subject,
        job,
        keys,
        Verb.PRESENT_KEYS,
        Actor.LISTEN,
        status=Status.QUEUED,
        reconcile_after_at=POLICY.session_limit,
    )


async def postponed_row_moves_its_due_time_alone(subject: Subject) -> None:
    job = await admitted(subject)
    seen = Instant(held(job.reconcile_after_at))
    stale = Postpone(job.job_id, 1, Instant(seen + 1), 5_000_000)
    await refused(subject, stale, RefusalCode.NOT_DUE, job=job)
    later = await moved(subject, replace(stale, seen_due=seen))
    now = later.updated_at
    due = Instant(now + 5_000_000)
    assert later == replace(job, updated_at=now, reconcile_after_at=due)
    assert await row(subject, job.job_id) == later


async def job_whose_conversation_is_not_ours_is_fenced(subject: Subject) -> None:
    job = await admitted(subject)
    fence = Fence(job.job_id, Actor.SWEEP)
    await refused(subject, fence, RefusalCode.CONVERSATION_OURS, job=job)
    await subject.set_conversation(UID, CONVERSATION, {"status": "completed"})
    before = await subject.conversation_fields(UID, CONVERSATION)
    await becomes(
        subject,
        job,
        fence,
        Verb.FENCE,
        Actor.SWEEP,
        status=Status.COMPLETED,
        outcome=Outcome.FENCED,
        completed_at=0,
    )
    assert await subject.conversation_fields(UID, CONVERSATION) == before


async def live_owner_is_fenced_by_nobody_else(subject: Subject) -> None:
    job = await leased(subject)
    await subject.remove_conversation(UID, CONVERSATION)
    await refused(subject, Fence(job.job_id, Actor.SWEEP), RefusalCode.LEASE_HELD, job=job)
    fenced = await moved(subject, Fence(job.job_id, Actor.WORKER, claim=job.claim))
    assert fenced.outcome is Outcome.FENCED


async def blocked_job_is_abandoned_after_the_limit(subject: Subject) -> None:
    job = await admitted(subject, byok=True)
    await refused(subject, Abandon(job.job_id), RefusalCode.NOT_DUE, job=job)
    subject.advance(held(POLICY.abandon_after))
    await becomes(
        subject,
        job,
        Abandon(job.job_id),
        Verb.ABANDON,
        Actor.SWEEP,
        code=FailureCode.ABANDONED,
        status=Status.DEAD_LETTER,
        failure_code=FailureCode.ABANDONED,
        outcome=Outcome.ABANDONED,
    )
    after = await conversation(subject)
    assert (after.status, after.discarded) == (ConversationStatus.FAILED, True)


async def retention_deletes_completed_rows_only_and_in_time(subject: Subject) -> None:
    job = await leased(subject)
    purge = Purge(job.job_id, PurgeCause.RETENTION)
    await refused(subject, purge, RefusalCode.NOT_DUE, job=job)
    done = await moved(subject, Complete(job.claim))
    await refused(subject, purge, RefusalCode.NOT_DUE, job=done)
    subject.advance(POLICY.retention)
    for changed in (True, False):
        answer = await decided(subject, purge)
        assert (answer.job, answer.did, answer.changed) == (None, Verb.PURGE, changed)
    assert await subject.outbox.get(job.job_id) is None
    assert (await conversation(subject)).job_id == job.job_id


async def owner_of_a_purged_row_is_refused(subject: Subject) -> None:
    job = await leased(subject)
    await decided(subject, Purge(job.job_id, PurgeCause.ACCOUNT))
    await refused(subject, Checkpoint(job.claim), RefusalCode.OWNERSHIP_LOST)
    await refused(subject, Complete(job.claim), RefusalCode.OWNERSHIP_LOST)
    await refused(subject, claim_of(job, "claim-2"), RefusalCode.JOB_UNKNOWN)


async def racing_verbs_on_one_generation_have_one_effect(subject: Subject) -> None:
    job = await admitted(subject)
    subject.advance(POLICY.handover)
    commands: list[Command] = [Redispatch(job.job_id, 1), claim_of(job), Redispatch(job.job_id, 1)]
    answers = [await subject.outbox.apply(command) for command in commands]
    changed = [a for a in answers if isinstance(a, Decision) and a.changed]
    assert len(changed) == 1
    assert (await row(subject, job.job_id)).dispatch_generation == 2
