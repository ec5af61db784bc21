"""What a decision is, and the move that every transition makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from listen_finalization.domain.codes import Actor, FailureCode, RefusalCode, Status, Verb
from listen_finalization.domain.commands import StepResult
from listen_finalization.domain.content import Memory
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.job import MAX_HISTORY, HistoryEntry, Instant, Job
from listen_finalization.domain.policy import Policy


@dataclass(frozen=True, slots=True)
class Decision:
    """What the store must write in one transaction, and nothing else.

    `job` is the row after (None: the row goes), `did` the verb that took place, which is not
    always the one asked for (a claim may fence). `conversation` is its state after, None when
    unchanged; `successor` another new row. `publish` copies the stored enrich record into the
    conversation, before `drop_results` removes the step results.
    """

    job: Job | None
    did: Verb
    changed: bool = True
    conversation: Conversation | None = None
    successor: Job | None = None
    publish: bool = False
    drop_results: bool = False
    context: Mapping[str, Any] | None = field(default=None, repr=False)
    results: tuple[StepResult, ...] = ()
    memories: tuple[Memory, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """The command changed nothing. `job` is the row that it met, None when there is none."""

    code: RefusalCode
    job: Job | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """The decision depends on the row of another revision: read it and decide again."""

    revision: int


@dataclass(frozen=True, slots=True)
class Probed:
    """What was found at the revision that a `Probe` asked for."""

    revision: int
    job: Job | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What a rule may know besides the row and the command, all read in one transaction."""

    conversation: Conversation | None
    now: Instant
    policy: Policy
    probed: Probed | None = None


Answer = Decision | Refused
Step = Decision | Refused | Probe


def unchanged(job: Job | None, did: Verb) -> Decision:
    """Answer a repeated command: the same row, nothing to write."""
    return Decision(job, did, changed=False)


def with_history(job: Job, entry: HistoryEntry) -> tuple[HistoryEntry, ...]:
    """Append an entry, folding it into an equal neighbour and keeping the last 32."""
    history = job.history
    if history and history[-1].same_kind(entry):
        return (*history[:-1], replace(entry, count=history[-1].count + 1))
    return (*history[-(MAX_HISTORY - 1) :], entry)


def moved(
    job: Job,
    verb: Verb,
    actor: Actor,
    now: Instant,
    *,
    to: Status,
    code: FailureCode | None = None,
    **changes: Any,
) -> Job:
    """Return the row after a transition, with its history line; a lease ends unless `to` is one."""
    generation = changes.get("dispatch_generation", job.dispatch_generation)
    epoch = changes.get("lease_epoch", job.lease_epoch)
    entry = HistoryEntry(now, verb, job.status, to, generation, epoch, actor, code)
    if to is not Status.LEASED:
        changes.update(leased_at=None, lease_expires_at=None)
    if to.terminal or to is Status.BLOCKED_BYOK:
        changes["reconcile_after_at"] = None
    if generation != job.dispatch_generation:
        changes.update(dispatched_at=now, last_task_retry=None)
    return replace(job, status=to, updated_at=now, history=with_history(job, entry), **changes)
