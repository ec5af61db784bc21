"""The verbs of everybody but the owner: keys, reconciler, sweeps and operators."""

from __future__ import annotations

from dataclasses import replace

from listen_finalization.domain import guards
from listen_finalization.domain.codes import (
    EffectState,
    FailureCode,
    Outcome,
    PurgeCause,
    RedispatchCause,
    RefusalCode,
    Status,
    Step,
    Verb,
)
from listen_finalization.domain.commands import (
    Abandon,
    Evict,
    Fence,
    Park,
    Postpone,
    PresentKeys,
    Purge,
    Redispatch,
    Replay,
    Resend,
)
from listen_finalization.domain.decision import Decision, Facts, Refused, moved, unchanged
from listen_finalization.domain.decision import Step as Answer
from listen_finalization.domain.ending import dead_lettered, exhausted, fenced, finish
from listen_finalization.domain.job import Effect, Instant, Job
from listen_finalization.domain.opening import named
from listen_finalization.domain.policy import Policy


def fence(job: Job, command: Fence, facts: Facts) -> Answer:
    """End a job whose conversation is not ours: by its owner, or where nobody owns it."""
    conversation = facts.conversation
    owned = command.claim is not None and guards.owner(job, command.claim)
    if not owned and not guards.lease_free(job, facts.now, command.dead_claim):
        return Refused(RefusalCode.LEASE_HELD, job)
    if guards.conversation_ours(conversation, job):
        return Refused(RefusalCode.CONVERSATION_OURS, job)
    return fenced(job, command.actor, facts.now)


def present_keys(job: Job, command: PresentKeys, facts: Facts) -> Answer:
    """Let a blocked job wait for the holder of the keys, for the session limit."""
    conversation = facts.conversation
    if not job.requires_byok:
        return Refused(RefusalCode.NOT_BYOK, job)
    if not guards.conversation_ours(conversation, job):
        return fenced(job, command.actor, facts.now)
    waits = job.reconcile_after_at is not None and job.reconcile_after_at > facts.now
    if job.status is Status.QUEUED and waits:
        return unchanged(job, Verb.PRESENT_KEYS)
    after = moved(
        job,
        Verb.PRESENT_KEYS,
        command.actor,
        facts.now,
        to=Status.QUEUED,
        reconcile_after_at=facts.now + facts.policy.session_limit,
    )
    return Decision(after, Verb.PRESENT_KEYS)


def _takeable(
    job: Job, command: Park | Redispatch, now: Instant, *, at_any_time: bool = False
) -> Refused | None:
    """Refuse what a reconciler or a delivery may not take from where it stands."""
    if not guards.generation_current(job, command.generation):
        return Refused(RefusalCode.STALE_GENERATION, job)
    if not guards.lease_free(job, now, command.dead_claim):
        return Refused(RefusalCode.LEASE_HELD, job)
    if not at_any_time and not guards.due(job, now, command.dead_claim):
        return Refused(RefusalCode.NOT_DUE, job)
    return None


def park(job: Job, command: Park, facts: Facts) -> Answer:
    """Block a BYOK job that nobody with keys took in time."""
    conversation = facts.conversation
    if not job.requires_byok:
        return Refused(RefusalCode.NOT_BYOK, job)
    refusal = _takeable(job, command, facts.now)
    if refusal is not None:
        return refusal
    if not guards.conversation_ours(conversation, job) or conversation is None:
        return fenced(job, command.actor, facts.now)
    if not guards.budget_left(job, facts.policy):
        return exhausted(job, conversation, Verb.PARK, command.actor, facts)
    after = moved(
        job,
        Verb.PARK,
        command.actor,
        facts.now,
        to=Status.BLOCKED_BYOK,
        dispatch_generation=job.dispatch_generation + 1,
    )
    return Decision(after, Verb.PARK)


def redispatch(job: Job, command: Redispatch, facts: Facts) -> Answer:
    """Mint the next hand-over; nothing is handed over here.

    A job that needs keys is refused (`keys_required`), also where only its conversation's mark
    says so: the caller parks it.
    """
    conversation = facts.conversation
    if job.requires_byok:
        return Refused(RefusalCode.KEYS_REQUIRED, job)
    refusal = _takeable(
        job, command, facts.now, at_any_time=command.cause is not RedispatchCause.DUE
    )
    if refusal is not None:
        return refusal
    if not guards.conversation_ours(conversation, job) or conversation is None:
        return fenced(job, command.actor, facts.now)
    if not guards.budget_left(job, facts.policy):
        return exhausted(job, conversation, Verb.REDISPATCH, command.actor, facts)
    return Decision(_handed_over(job, command, facts.now, facts.policy), Verb.REDISPATCH)


def _handed_over(job: Job, command: Redispatch, now: Instant, policy: Policy) -> Job:
    handovers = job.handovers + (0 if command.cause is RedispatchCause.LANE else 1)
    return moved(
        job,
        Verb.REDISPATCH,
        command.actor,
        now,
        to=Status.QUEUED,
        code=command.code,
        failure_code=command.code or job.failure_code,
        dispatch_generation=job.dispatch_generation + 1,
        handovers=handovers,
        reconcile_after_at=now + command.delay + policy.handover_delay(handovers),
    )


def postpone(job: Job, command: Postpone, facts: Facts) -> Answer:
    """Move the due time of a row that stands as it was seen."""
    if not guards.generation_current(job, command.generation):
        return Refused(RefusalCode.STALE_GENERATION, job)
    if not guards.lease_free(job, facts.now, None):
        return Refused(RefusalCode.LEASE_HELD, job)
    due = Instant(facts.now + command.delay)
    if job.reconcile_after_at == due:
        return unchanged(job, Verb.POSTPONE)
    if job.reconcile_after_at != command.seen_due:
        return Refused(RefusalCode.NOT_DUE, job)
    later = replace(job, reconcile_after_at=due, updated_at=facts.now)
    return Decision(later, Verb.POSTPONE)


def evict(job: Job, command: Evict, facts: Facts) -> Answer:
    """Take the lease away from its owner, at the generation and epoch that were shown."""
    current = guards.generation_current(job, command.generation)
    if not current or not guards.epoch_current(job, command.epoch):
        return Refused(RefusalCode.STALE_GENERATION, job)
    if not guards.conversation_ours(facts.conversation, job):
        return fenced(replace(job, claim_id=command.request_id), command.actor, facts.now)
    after = moved(
        job,
        Verb.EVICT,
        command.actor,
        facts.now,
        to=Status.BLOCKED_BYOK if job.requires_byok else Status.QUEUED,
        code=FailureCode.EVICTED,
        failure_code=FailureCode.EVICTED,
        dispatch_generation=job.dispatch_generation + 1,
        claim_id=command.request_id,
        reconcile_after_at=facts.now,
    )
    return Decision(after, Verb.EVICT)


def replay(job: Job, command: Replay, facts: Facts) -> Answer:
    """Open a dead letter with a new budget; a BYOK job waits for its keys."""
    conversation = facts.conversation
    if not guards.generation_current(job, command.generation):
        return Refused(RefusalCode.STALE_GENERATION, job)
    if conversation is None or conversation.deleted:
        return Refused(RefusalCode.CONVERSATION_NOT_FOUND, job)
    if not guards.conversation_replayable(conversation, job):
        return Refused(RefusalCode.CONVERSATION_CHANGED, job)
    after = _replayed(job, command, facts.now, facts.policy)
    return Decision(
        after,
        Verb.REPLAY,
        conversation=named(conversation, after, facts.now, wanted=conversation.wanted_version),
    )


def _replayed(job: Job, command: Replay, now: Instant, policy: Policy) -> Job:
    handovers = 0 if job.requires_byok else 1
    return moved(
        job,
        Verb.REPLAY,
        command.actor,
        now,
        to=Status.BLOCKED_BYOK if job.requires_byok else Status.QUEUED,
        dispatch_generation=job.dispatch_generation + 1,
        claim_id=command.request_id,
        attempt_count=0,
        handovers=handovers,
        releases=0,
        replay_count=job.replay_count + 1,
        failure_code=None,
        outcome=None,
        content_version=None,
        effects=job.settled_deliveries,
        reconcile_after_at=now + policy.handover_delay(1),
    )


def resend(job: Job, command: Resend, facts: Facts) -> Answer:
    """Take a dropped delivery of a completed job, or note what came of it."""
    conversation = facts.conversation
    effect = job.effect(Step.FANOUT, command.destination)
    if job.outcome is not Outcome.SUCCESS or effect is None:
        return Refused(RefusalCode.DELIVERY_NOT_DROPPED, job)
    if command.result is not None:
        return _noted(job, command, facts.now)
    if conversation is None or conversation.deleted:
        return Refused(RefusalCode.CONVERSATION_NOT_FOUND, job)
    if not guards.delivery_dropped(job, effect, facts.now, facts.policy):
        return Refused(RefusalCode.DELIVERY_NOT_DROPPED, job)
    taken = replace(effect, state=EffectState.SENT, tries=effect.tries + 1)
    return _resent(job, command, taken, facts.now)


def _noted(job: Job, command: Resend, now: Instant) -> Answer:
    effect = job.effect(Step.FANOUT, command.destination)
    mine = job.claim_id == command.request_id
    if effect is None or effect.state is not EffectState.SENT or not mine:
        return Refused(RefusalCode.OWNERSHIP_LOST, job)
    told = command.result
    if told is None or not told.final:
        return Refused(RefusalCode.DELIVERY_NOT_DROPPED, job)
    return _resent(job, command, replace(effect, state=told.state, code=told.code), now)


def _resent(job: Job, command: Resend, line: Effect, now: Instant) -> Decision:
    effects = tuple(
        line if (e.step, e.destination) == (Step.FANOUT, command.destination) else e
        for e in job.effects
    )
    after = moved(
        job,
        Verb.RESEND,
        command.actor,
        now,
        to=Status.COMPLETED,
        claim_id=command.request_id,
        effects=effects,
    )
    return Decision(after, Verb.RESEND)


def abandon(job: Job, command: Abandon, facts: Facts) -> Answer:
    """Give up a blocked job that is older than the limit; refused while the limit is off."""
    conversation = facts.conversation
    if facts.policy.abandon_after is None:
        return Refused(RefusalCode.DISABLED, job)
    if not guards.old_enough(job, facts.now, facts.policy):
        return Refused(RefusalCode.NOT_DUE, job)
    if not guards.conversation_ours(conversation, job) or conversation is None:
        return fenced(job, command.actor, facts.now)
    if guards.only_deliveries_open(job):
        return finish(
            job, conversation, Verb.ABANDON, command.actor, facts, code=FailureCode.ABANDONED
        )
    return dead_lettered(
        job,
        conversation,
        Verb.ABANDON,
        command.actor,
        facts.now,
        code=FailureCode.ABANDONED,
        outcome=Outcome.ABANDONED,
    )


def purge(job: Job, command: Purge, facts: Facts) -> Answer:
    """Delete the row: always for an account, after retention for a completed row."""
    if command.cause is PurgeCause.RETENTION and not guards.retired(job, facts.now, facts.policy):
        return Refused(RefusalCode.NOT_DUE, job)
    return Decision(None, Verb.PURGE, drop_results=True)
