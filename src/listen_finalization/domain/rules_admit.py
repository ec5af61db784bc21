"""Admission: which conversations become jobs, under which revision."""

from __future__ import annotations

from dataclasses import replace

from listen_finalization.domain import guards
from listen_finalization.domain.codes import ConversationStatus, Outcome, RefusalCode, Status, Verb
from listen_finalization.domain.commands import Admit
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import (
    Decision,
    Facts,
    Probe,
    Refused,
    Step,
    moved,
    unchanged,
)
from listen_finalization.domain.ending import fenced
from listen_finalization.domain.identity import identifier_fault
from listen_finalization.domain.job import Instant, Job
from listen_finalization.domain.opening import first_status, fresh, named


def admit(job: Job | None, command: Admit, facts: Facts) -> Step:
    """Decide an admission; `job` is the row that the conversation names, if there is one."""
    conversation = facts.conversation
    misnamed = identifier_fault(command.uid) or identifier_fault(command.conversation_id)
    if conversation is None or conversation.deleted or misnamed:
        return Refused(RefusalCode.CONVERSATION_NOT_FOUND)
    present = job if job is not None and conversation.names(job) else None
    if present is not None and conversation.status is not ConversationStatus.IN_PROGRESS:
        again = _repeat(present, conversation, command, facts.now)
        if again is not None:
            return again
    else:
        refusal = _refusal(present, conversation, command)
        if refusal is not None:
            return Refused(refusal, present)
    if present is not None and guards.discard_ours(present):
        conversation = replace(conversation, discarded=False)
    fault = _content_fault(conversation)
    if fault is not None:
        return Refused(fault, present)
    if present is not None and not present.terminal:
        return _reattached(present, conversation, command, facts)
    return _at_free_revision(conversation, command, facts)


def _repeat(
    present: Job, conversation: Conversation, command: Admit, now: Instant
) -> Decision | None:
    """Answer for a conversation that has its job; None where a new revision is due."""
    if not present.terminal:
        return _repeat_open(present, conversation, command, now)
    if conversation.status is ConversationStatus.PROCESSING and not conversation.discarded:
        return None
    revise = (
        conversation.status is ConversationStatus.COMPLETED
        and (not conversation.discarded or guards.discard_ours(present))
        and conversation.has_content
        and guards.newer_content(conversation, present)
    )
    fence = present.outcome is Outcome.FENCED
    return None if revise else unchanged(present, Verb.FENCE if fence else Verb.ADMIT)


def _repeat_open(
    present: Job, conversation: Conversation, command: Admit, now: Instant
) -> Decision:
    if not guards.conversation_ours(conversation, present):
        if guards.lease_free(present, now, None):
            return fenced(present, command.actor, now)
        return unchanged(present, Verb.ADMIT)
    reads_later = present.status is not Status.LEASED and not present.has_results
    if reads_later or not guards.newer_content(conversation, present):
        return unchanged(present, Verb.ADMIT)
    noted = replace(conversation, wanted_version=conversation.content_version)
    return Decision(present, Verb.ADMIT, changed=False, conversation=noted)


def _refusal(present: Job | None, conversation: Conversation, command: Admit) -> RefusalCode | None:
    """Say why a conversation without a job of its own is not admitted; None where it is."""
    status = conversation.status
    if status is ConversationStatus.IN_PROGRESS:
        return None
    retired = conversation.job_id is not None
    if status is ConversationStatus.PROCESSING and (retired or command.adopt):
        return None
    if retired and status is ConversationStatus.COMPLETED and not conversation.discarded:
        newer = guards.newer_content(conversation, present)
        return None if newer else RefusalCode.CONVERSATION_SETTLED
    if retired and status in (ConversationStatus.COMPLETED, ConversationStatus.FAILED):
        return RefusalCode.CONVERSATION_SETTLED
    if conversation.discarded:
        return RefusalCode.CONVERSATION_DISCARDED
    return RefusalCode.CONVERSATION_NOT_OURS


def _content_fault(conversation: Conversation) -> RefusalCode | None:
    if conversation.discarded:
        return RefusalCode.CONVERSATION_DISCARDED
    if not conversation.has_content:
        return RefusalCode.CONVERSATION_EMPTY
    if not conversation.has_room:
        return RefusalCode.CONVERSATION_FULL
    return None


def _at_free_revision(conversation: Conversation, command: Admit, facts: Facts) -> Step:
    """Open a job at the first revision whose id no terminal row has taken."""
    probed = facts.probed
    if probed is None:
        return Probe((conversation.revision or 0) + 1)
    if probed.job is None:
        return _opened(conversation, command, facts, probed.revision)
    if probed.job.terminal:
        return Probe(probed.revision + 1)
    return _reattached(probed.job, conversation, command, facts)


def _opened(conversation: Conversation, command: Admit, facts: Facts, revision: int) -> Decision:
    job = fresh(
        conversation,
        revision,
        facts.now,
        facts.policy,
        actor=command.actor,
        holds_keys=command.holds_keys,
        force_process=command.force_process,
    )
    return _admitted(job, conversation, command, facts.now)


def _admitted(job: Job, conversation: Conversation, command: Admit, now: Instant) -> Decision:
    after = named(conversation, job, now, wanted=conversation.content_version)
    return Decision(job, Verb.ADMIT, conversation=after, context=command.context)


def _reattached(row: Job, conversation: Conversation, command: Admit, facts: Facts) -> Decision:
    """Take over an open row of an earlier life of the conversation: its old owner is fenced."""
    byok = row.requires_byok or conversation.requires_byok or command.holds_keys
    status, due, handovers = first_status(byok, command.holds_keys, facts.now, facts.policy)
    job = moved(
        row,
        Verb.ADMIT,
        command.actor,
        facts.now,
        to=status,
        requires_byok=byok,
        force_process=command.force_process,
        dispatch_generation=row.dispatch_generation + 1,
        reconcile_after_at=due,
        handovers=handovers,
        attempt_count=0,
        releases=0,
        content_version=None,
        effects=row.settled_deliveries,
    )
    return replace(_admitted(job, conversation, command, facts.now), drop_results=True)
