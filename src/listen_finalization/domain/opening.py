"""How a job and its conversation look right after an admission."""

from __future__ import annotations

from dataclasses import replace

from listen_finalization.domain.codes import Actor, ConversationStatus, Status, Verb
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.identity import job_id
from listen_finalization.domain.job import HistoryEntry, Instant, Job
from listen_finalization.domain.policy import Policy


def fresh(
    conversation: Conversation,
    revision: int,
    now: Instant,
    policy: Policy,
    *,
    actor: Actor,
    holds_keys: bool,
    force_process: bool,
) -> Job:
    """Build the row of a new revision: queued, or blocked where keys are needed and absent."""
    byok = conversation.requires_byok or holds_keys
    status, due, handovers = first_status(byok, holds_keys, now, policy)
    entry = HistoryEntry(now, Verb.ADMIT, None, status, 1, 0, actor)
    return Job(
        job_id=job_id(conversation.uid, conversation.conversation_id, revision),
        uid=conversation.uid,
        conversation_id=conversation.conversation_id,
        finalization_revision=revision,
        status=status,
        requires_byok=byok,
        force_process=force_process,
        created_at=now,
        updated_at=now,
        dispatched_at=now,
        handovers=handovers,
        reconcile_after_at=due,
        history=(entry,),
    )


def first_status(
    byok: bool, holds_keys: bool, now: Instant, policy: Policy
) -> tuple[Status, Instant | None, int]:
    """Return status, due time and hand-overs of an admitted job."""
    if not byok:
        return Status.QUEUED, Instant(now + policy.handover_delay(1)), 1
    if holds_keys:
        return Status.QUEUED, Instant(now + policy.session_limit), 0
    return Status.BLOCKED_BYOK, None, 0


def named(
    conversation: Conversation, job: Job, now: Instant, *, wanted: int | None
) -> Conversation:
    """Return the conversation as an admission leaves it: processing, under `job`.

    `wanted` is the newest content version that was asked for so far.
    """
    return replace(
        conversation,
        status=ConversationStatus.PROCESSING,
        discarded=False,
        requires_byok=conversation.requires_byok or job.requires_byok,
        job_id=job.job_id,
        revision=job.finalization_revision,
        wanted_version=wanted,
        admitted_at=now,
    )
