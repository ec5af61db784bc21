"""The verbs of a run: claim, checkpoint, complete, fail and release."""

from __future__ import annotations

from dataclasses import replace

from listen_finalization.domain import guards
from listen_finalization.domain.codes import RefusalCode, ReleaseCause, Status, Verb
from listen_finalization.domain.commands import (
    Checkpoint,
    ClaimJob,
    Complete,
    Fail,
    OwnedCommand,
    Release,
)
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import (
    Decision,
    Facts,
    Refused,
    Step,
    moved,
)
from listen_finalization.domain.ending import exhausted, fenced, finish
from listen_finalization.domain.job import MAX_EFFECTS, Effect, IllegalJobError, Instant, Job


def claim(job: Job, command: ClaimJob, facts: Facts) -> Step:
    """Take the lease; the order of the checks is that of contract 4."""
    conversation = facts.conversation
    if not guards.generation_current(job, command.generation):
        return Refused(RefusalCode.STALE_GENERATION, job)
    if not guards.lease_free(job, facts.now, command.dead_claim):
        return Refused(RefusalCode.LEASE_HELD, job)
    if not guards.keys_present(job, command.holds_keys):
        return Refused(RefusalCode.KEYS_REQUIRED, job)
    if not guards.conversation_ours(conversation, job) or conversation is None:
        return fenced(replace(job, claim_id=command.claim_id), command.actor, facts.now)
    if not guards.budget_left(job, facts.policy):
        marked = replace(job, claim_id=command.claim_id)
        return exhausted(marked, conversation, Verb.CLAIM, command.actor, facts)
    return Decision(_leased(job, conversation, command, facts), Verb.CLAIM)


def _leased(job: Job, conversation: Conversation, command: ClaimJob, facts: Facts) -> Job:
    now = facts.now
    end = Instant(now + facts.policy.lease)
    pinned = job.has_results and job.content_version is not None
    retries = [r for r in (job.last_task_retry, command.task_retry) if r is not None]
    return moved(
        job,
        Verb.CLAIM,
        command.actor,
        now,
        to=Status.LEASED,
        lease_epoch=job.lease_epoch + 1,
        claim_id=command.claim_id,
        attempt_count=job.attempt_count + 1,
        handovers=0,
        content_version=job.content_version if pinned else conversation.content_version,
        last_task_retry=max(retries, default=None),
        leased_at=now,
        lease_expires_at=end,
        reconcile_after_at=end,
    )


def merged(held: tuple[Effect, ...], told: tuple[Effect, ...]) -> tuple[Effect, ...]:
    """Lay new ledger lines over the held ones; a final line is never taken back."""
    lines = {(effect.step, effect.destination): effect for effect in held}
    for effect in told:
        key = (effect.step, effect.destination)
        if key not in lines or not lines[key].final:
            lines[key] = effect
    if len(lines) > MAX_EFFECTS:
        raise IllegalJobError
    return tuple(lines.values())


def checkpoint(job: Job, command: Checkpoint, facts: Facts) -> Step:
    """Extend the lease; with effects, prove that the conversation is still ours and store them."""
    if not guards.owner(job, command.claim):
        return Refused(RefusalCode.OWNERSHIP_LOST, job)
    writes = bool(command.effects or command.results or command.memories)
    if writes and not guards.conversation_ours(facts.conversation, job):
        return fenced(job, command.actor, facts.now)
    end = Instant(max(facts.now + facts.policy.lease, job.lease_expires_at or 0))
    effects = merged(job.effects, command.effects)
    if end == job.lease_expires_at and not writes:
        return Decision(job, Verb.CHECKPOINT, changed=False)
    after = replace(
        job, lease_expires_at=end, reconcile_after_at=end, updated_at=facts.now, effects=effects
    )
    return Decision(after, Verb.CHECKPOINT, results=command.results, memories=command.memories)


def _owned(job: Job, command: OwnedCommand, facts: Facts) -> Conversation | Decision | Refused:
    """Return the conversation of a caller that may settle, else the answer for it."""
    if not guards.owner(job, command.claim):
        return Refused(RefusalCode.OWNERSHIP_LOST, job)
    conversation = facts.conversation
    if not guards.conversation_ours(conversation, job) or conversation is None:
        return fenced(job, command.actor, facts.now)
    return conversation


def complete(job: Job, command: Complete, facts: Facts) -> Step:
    """Settle with success; a wish for newer content admits the next free revision."""
    owned = _owned(job, command, facts)
    if not isinstance(owned, Conversation):
        return owned
    if not guards.deliveries_settled(job):
        return Refused(RefusalCode.DELIVERIES_OPEN, job)
    return finish(
        job,
        owned,
        Verb.COMPLETE,
        command.actor,
        facts,
        discard=command.discard,
        holds_keys=command.holds_keys,
    )


def fail(job: Job, command: Fail, facts: Facts) -> Step:
    """End the attempt; the final one ends the job."""
    owned = _owned(job, command, facts)
    if not isinstance(owned, Conversation):
        return owned
    if not guards.attempts_left(job, command.task_retry, facts.policy):
        return exhausted(job, owned, Verb.FAIL, command.actor, facts, code=command.code)
    wait = facts.policy.backoff_delay(job.attempt_count, command.jitter)
    if job.requires_byok:
        wait = max(wait, facts.policy.session_limit)
    after = moved(
        job,
        Verb.FAIL,
        command.actor,
        facts.now,
        to=Status.QUEUED,
        code=command.code,
        failure_code=command.code,
        reconcile_after_at=facts.now + wait,
    )
    return Decision(after, Verb.FAIL)


def release(job: Job, command: Release, facts: Facts) -> Step:
    """Give the job back without an attempt; too many environment faults become failures."""
    owned = _owned(job, command, facts)
    if not isinstance(owned, Conversation):
        return owned
    environment = command.cause is ReleaseCause.ENVIRONMENT
    if environment and not guards.releases_left(job, command.lane_paused, facts.policy):
        failure = Fail(
            command.claim, command.code, command.actor, command.task_retry, command.jitter
        )
        return fail(job, failure, facts)
    generation = job.dispatch_generation + (1 if environment else 0)
    hand_over = environment and not job.requires_byok
    wait = command.delay + facts.policy.handover_delay(1) if hand_over else 0
    after = moved(
        job,
        Verb.RELEASE,
        command.actor,
        facts.now,
        to=Status.BLOCKED_BYOK if job.requires_byok else Status.QUEUED,
        code=command.code,
        failure_code=command.code,
        dispatch_generation=generation,
        attempt_count=max(job.attempt_count - 1, 0),
        releases=job.releases + 1,
        handovers=1 if hand_over else 0,
        reconcile_after_at=facts.now + wait,
    )
    return Decision(after, Verb.RELEASE)
