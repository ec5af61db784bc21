"""The guards of the table, one predicate each, looked up by name at every decision.

They stand alone so that a test can take any one of them away and see an invariant break.
"""

from __future__ import annotations

from listen_finalization.domain.codes import (
    ConversationStatus,
    EffectCode,
    EffectState,
    Status,
    Step,
)
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.job import Claim, Effect, Instant, Job
from listen_finalization.domain.policy import Policy


def owner(job: Job, claim: Claim) -> bool:
    """Whether the claim owns the row: generation, epoch and claim id equal, and leased.

    An expired lease still owns; only a newer claim or generation ends it.
    """
    return (
        job.status is Status.LEASED
        and job.dispatch_generation == claim.generation
        and job.lease_epoch == claim.epoch
        and job.claim_id == claim.claim_id
    )


def conversation_ours(conversation: Conversation | None, job: Job) -> bool:
    """Whether the conversation exists, is processing for this job, and nobody took it away."""
    return (
        conversation is not None
        and not conversation.deleted
        and not conversation.discarded
        and conversation.status is ConversationStatus.PROCESSING
        and conversation.names(job)
    )


def generation_current(job: Job, generation: int) -> bool:
    """Whether a delivery or an operator speaks of the row's present generation."""
    return job.dispatch_generation == generation


def epoch_current(job: Job, epoch: int) -> bool:
    """Whether an operator speaks of the lease that now stands."""
    return job.lease_epoch == epoch


def claim_unused(job: Job, claim_id: str) -> bool:
    """Whether no earlier verb left this claim id on the row."""
    return job.claim_id != claim_id


def lease_free(job: Job, now: Instant, dead_claim: str | None) -> bool:
    """Whether nobody holds the row: not leased, lease over, or its process proved dead."""
    if job.lease_expires_at is None:
        return True
    return job.lease_expires_at <= now or (dead_claim is not None and job.claim_id == dead_claim)


def keys_present(job: Job, holds_keys: bool) -> bool:
    """Whether the caller may run this job: a BYOK job only with the user's keys in hand."""
    return holds_keys or not job.requires_byok


def budget_left(job: Job, policy: Policy) -> bool:
    """Whether another attempt may start."""
    return job.attempt_count < policy.max_attempts


def attempts_left(job: Job, task_retry: int | None, policy: Policy) -> bool:
    """Whether a failed attempt is followed by another, by our count and by the queue's."""
    if task_retry is not None and task_retry >= policy.max_attempts - 1:
        return False
    return job.attempt_count < policy.max_attempts


def releases_left(job: Job, lane_paused: bool, policy: Policy) -> bool:
    """Whether an environment fault is still free of charge."""
    return lane_paused or job.releases + 1 < policy.environment_release_limit


def due(job: Job, now: Instant, dead_claim: str | None) -> bool:
    """Whether the reconciler may take the row; a lease proved dead is due at once."""
    if dead_claim is not None and job.claim_id == dead_claim and job.status is Status.LEASED:
        return True
    return job.reconcile_after_at is not None and job.reconcile_after_at <= now


def only_deliveries_open(job: Job) -> bool:
    """Whether all that the user reads is stored, so that the job must not be buried."""
    return job.only_deliveries_open


def deliveries_settled(job: Job) -> bool:
    """Whether no delivery still waits for an answer."""
    return all(effect.final for effect in job.deliveries)


def newer_content(conversation: Conversation, job: Job | None) -> bool:
    """Whether content was stored that no finalization has read or been asked for."""
    read = job.content_version or 0 if job is not None else 0
    return conversation.content_version > max(read, conversation.wanted_version or 0)


def discard_ours(job: Job) -> bool:
    """Whether it was this job's run that discarded the conversation, so that more may revive it."""
    effect = job.effect(Step.ENRICH)
    return job.terminal and effect is not None and effect.code is EffectCode.DISCARDED


def wish_open(conversation: Conversation, job: Job) -> bool:
    """Whether a finalize came for content that this run did not read."""
    return (conversation.wanted_version or 0) > (job.content_version or 0)


def conversation_replayable(conversation: Conversation | None, job: Job) -> bool:
    """Whether the conversation is still as the dead letter left it."""
    return (
        conversation is not None
        and not conversation.deleted
        and conversation.status is ConversationStatus.FAILED
        and conversation.names(job)
    )


def delivery_dropped(job: Job, effect: Effect, now: Instant, policy: Policy) -> bool:
    """Whether the delivery may be sent again: dropped, or a resend that never noted its end."""
    if effect.state is EffectState.DROPPED:
        return True
    return effect.state is EffectState.SENT and job.updated_at + policy.resend_limit <= now


def old_enough(job: Job, now: Instant, policy: Policy) -> bool:
    """Whether a blocked job has waited longer than the policy's limit."""
    return policy.abandon_after is not None and job.updated_at + policy.abandon_after <= now


def retired(job: Job, now: Instant, policy: Policy) -> bool:
    """Whether retention lets the row go: completed rows only, counted from completion."""
    return job.completed_at is not None and job.completed_at + policy.retention <= now
