"""How a job ends: fenced, dead, or completed, with or without a successor."""

from __future__ import annotations

from dataclasses import replace

from listen_finalization.domain import guards
from listen_finalization.domain.codes import (
    Actor,
    ConversationStatus,
    EffectCode,
    EffectState,
    FailureCode,
    Outcome,
    Status,
    Verb,
)
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import Decision, Facts, Probe, Step, moved
from listen_finalization.domain.job import Instant, Job
from listen_finalization.domain.opening import fresh, named


def fenced(job: Job, actor: Actor, now: Instant) -> Decision:
    """End a job whose conversation is not ours, leaving the conversation alone."""
    after = moved(
        job,
        Verb.FENCE,
        actor,
        now,
        to=Status.COMPLETED,
        outcome=Outcome.FENCED,
        completed_at=now,
    )
    return Decision(after, Verb.FENCE, drop_results=True)


def dead_lettered(
    job: Job,
    conversation: Conversation,
    verb: Verb,
    actor: Actor,
    now: Instant,
    *,
    code: FailureCode,
    outcome: Outcome = Outcome.FAILED,
) -> Decision:
    """Bury the job and mark its conversation failed and discarded in the same transaction."""
    after = moved(
        job,
        verb,
        actor,
        now,
        to=Status.DEAD_LETTER,
        code=code,
        failure_code=code,
        outcome=outcome,
    )
    buried = replace(conversation, status=ConversationStatus.FAILED, discarded=True)
    return Decision(after, verb, conversation=buried, drop_results=True)


def _dropped_deliveries(job: Job) -> Job:
    effects = tuple(
        e
        if e.final
        else replace(e, state=EffectState.DROPPED, code=e.code or EffectCode.ATTEMPTS_EXHAUSTED)
        for e in job.effects
    )
    return replace(job, effects=effects)


def completed(
    job: Job,
    conversation: Conversation,
    verb: Verb,
    actor: Actor,
    now: Instant,
    *,
    code: FailureCode | None = None,
    discard: bool = False,
    successor: Job | None = None,
) -> Decision:
    """End the job with success: the stored record is published and open deliveries are dropped.

    With a `successor` the conversation goes on as `processing` under it.
    """
    after = moved(
        _dropped_deliveries(job),
        verb,
        actor,
        now,
        to=Status.COMPLETED,
        code=code,
        failure_code=code,
        outcome=Outcome.SUCCESS,
        completed_at=now,
    )
    wanted = max(conversation.wanted_version or 0, job.content_version or 0)
    ended = replace(
        conversation,
        status=ConversationStatus.COMPLETED,
        discarded=discard,
        wanted_version=wanted,
    )
    if successor is not None:
        ended = named(conversation, successor, now, wanted=wanted)
    return Decision(
        after, verb, conversation=ended, successor=successor, publish=True, drop_results=True
    )


def finish(
    job: Job,
    conversation: Conversation,
    verb: Verb,
    actor: Actor,
    facts: Facts,
    *,
    code: FailureCode | None = None,
    discard: bool = False,
    holds_keys: bool = False,
) -> Step:
    """Complete the job; a wish for newer content opens the next free revision with it."""
    now, probed = facts.now, facts.probed
    if not guards.wish_open(conversation, job):
        return completed(job, conversation, verb, actor, now, code=code, discard=discard)
    if probed is None or probed.job is not None:
        return Probe((probed.revision if probed else job.finalization_revision) + 1)
    successor = fresh(
        conversation,
        probed.revision,
        now,
        facts.policy,
        actor=actor,
        holds_keys=holds_keys and job.requires_byok,
        force_process=job.force_process,
    )
    return completed(job, conversation, verb, actor, now, code=code, successor=successor)


def exhausted(
    job: Job,
    conversation: Conversation,
    verb: Verb,
    actor: Actor,
    facts: Facts,
    *,
    code: FailureCode = FailureCode.WORKER_LOST,
) -> Step:
    """End a job without attempts left: completed when only deliveries are open, else dead.

    The code says what the last attempt died of; by default its worker was never heard of again.
    """
    if guards.only_deliveries_open(job):
        return finish(job, conversation, verb, actor, facts, code=code)
    return dead_lettered(job, conversation, verb, actor, facts.now, code=code)
