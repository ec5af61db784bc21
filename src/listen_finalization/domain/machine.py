"""The state machine: `decide` is the only place where a job changes its state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from listen_finalization.domain import rules_admit, rules_owner, rules_recovery
from listen_finalization.domain.codes import RefusalCode, Status, Verb
from listen_finalization.domain.commands import (
    Abandon,
    Admit,
    Checkpoint,
    ClaimJob,
    Command,
    Complete,
    Evict,
    Fail,
    Fence,
    Park,
    Postpone,
    PresentKeys,
    Purge,
    Redispatch,
    Release,
    Replay,
    Resend,
    verb_of,
)
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import (
    Answer,
    Decision,
    Facts,
    Probe,
    Probed,
    Refused,
    unchanged,
)
from listen_finalization.domain.job import IllegalJobError, Instant, Job
from listen_finalization.domain.policy import Policy
from listen_finalization.domain.repeats import repeated
from listen_finalization.domain.table import TABLE

_EDGES = {verb: row.edges for verb, row in TABLE.items()}
_OWNED = (Checkpoint, Complete, Fail, Release)

_RULES: dict[type[Any], Callable[..., Answer | Probe]] = {
    ClaimJob: rules_owner.claim,
    Checkpoint: rules_owner.checkpoint,
    Complete: rules_owner.complete,
    Fail: rules_owner.fail,
    Release: rules_owner.release,
    Fence: rules_recovery.fence,
    PresentKeys: rules_recovery.present_keys,
    Park: rules_recovery.park,
    Redispatch: rules_recovery.redispatch,
    Postpone: rules_recovery.postpone,
    Evict: rules_recovery.evict,
    Replay: rules_recovery.replay,
    Resend: rules_recovery.resend,
    Abandon: rules_recovery.abandon,
    Purge: rules_recovery.purge,
}


def decide(
    job: Job | None,
    conversation: Conversation | None,
    command: Command,
    now: Instant,
    policy: Policy,
    probed: Probed | None = None,
) -> Answer | Probe:
    """Say what `command` does to the row, or why it does nothing.

    `job` is the row that the command names (for an admission: the one that the conversation
    names); `now` is the store's clock, read under its write lock. A `Probe` asks for the row of
    another revision: read it and call again with it as `probed`. Pure: no clock, no I/O. Raises
    `IllegalJobError` only for a fault of the caller's, never for a race.
    """
    facts = Facts(conversation, now, policy, probed)
    if isinstance(command, Admit):
        return _checked(job, rules_admit.admit(job, command, facts), probed)
    if job is None:
        return _without_row(command)
    job = _marked(job, conversation)
    answer = _identity(job, command) or repeated(job, command) or _misplaced(job, command)
    if answer is not None:
        return answer
    return _checked(job, _RULES[type(command)](job, command, facts), None)


def _marked(job: Job, conversation: Conversation | None) -> Job:
    """Let a job need keys from the moment that its conversation does; never back.

    A dead letter too, since a replay may open it; what is completed stays as it ran.
    """
    if job.status is Status.COMPLETED or job.requires_byok or conversation is None:
        return job
    if not (conversation.requires_byok and conversation.names(job)):
        return job
    return replace(job, requires_byok=True)


def _without_row(command: Command) -> Answer:
    if isinstance(command, Purge):
        return unchanged(None, Verb.PURGE)
    if isinstance(command, _OWNED):
        return Refused(RefusalCode.OWNERSHIP_LOST)
    return Refused(RefusalCode.JOB_UNKNOWN)


def _identity(job: Job, command: Command) -> Refused | None:
    """Refuse a caller that believes the job to be about another conversation."""
    if not isinstance(command, ClaimJob | PresentKeys) or command.uid is None:
        return None
    if (command.uid, command.conversation_id) == (job.uid, job.conversation_id):
        return None
    return Refused(RefusalCode.WRONG_IDENTITY, job)


def _misplaced(job: Job, command: Command) -> Refused | None:
    """Refuse a verb that the table does not have for the row's status."""
    if job.status in TABLE[verb_of(command)].sources:
        return None
    if isinstance(command, _OWNED):
        return Refused(RefusalCode.OWNERSHIP_LOST, job)
    if job.status.terminal:
        return Refused(RefusalCode.TERMINAL, job)
    if job.status is Status.BLOCKED_BYOK:
        return Refused(RefusalCode.BLOCKED_BYOK, job)
    if job.status is Status.LEASED:
        return Refused(RefusalCode.LEASE_HELD, job)
    return Refused(RefusalCode.WRONG_STATUS, job)


def _checked(job: Job | None, answer: Answer | Probe, probed: Probed | None) -> Answer | Probe:
    """Hold a decision against the table before anybody may write it."""
    if not isinstance(answer, Decision) or not answer.changed:
        return answer
    same = answer.job is not None and job is not None and answer.job.job_id == job.job_id
    found = job if same or answer.job is None else (probed.job if probed else None)
    before = found.status if found is not None else None
    after = answer.job.status if answer.job is not None else None
    if (before, after) not in _EDGES[answer.did]:
        raise IllegalJobError
    return answer
