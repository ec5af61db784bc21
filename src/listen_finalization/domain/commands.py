"""The commands, one per verb; identifiers and random bits are the caller's and come with them.

A command that settles or writes for an owner holds the owner's `Claim`: there is no form
without it. Content (`context`, `results`, `memories`) passes through to the store unopened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from listen_finalization.domain.codes import (
    Actor,
    FailureCode,
    PurgeCause,
    RedispatchCause,
    ReleaseCause,
    Step,
    Verb,
)
from listen_finalization.domain.content import Memory
from listen_finalization.domain.job import Claim, Effect, Instant


@dataclass(frozen=True, slots=True)
class StepResult:
    """The stored answer of a step (or of one chunk of it): JSON text, content."""

    step: Step
    payload: str = field(repr=False)
    chunk: int = 0


@dataclass(frozen=True, slots=True)
class Admit:
    """Accept the end of a conversation. `adopt` also takes one that is `processing` unowned."""

    uid: str
    conversation_id: str
    actor: Actor = Actor.CUSTOMER
    force_process: bool = False
    holds_keys: bool = False
    adopt: bool = False
    context: Mapping[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ClaimJob:
    """Take the lease of one delivery's generation.

    `uid` and `conversation_id` are what the caller believes it runs, checked when given together;
    `dead_claim` is a claim id whose process the caller has proved dead: that lease counts as
    expired. `task_retry` is the queue's verified retry count.
    """

    job_id: str
    generation: int
    claim_id: str
    actor: Actor = Actor.WORKER
    holds_keys: bool = False
    uid: str | None = None
    conversation_id: str | None = None
    task_retry: int | None = None
    dead_claim: str | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Prove ownership and extend the lease; with effects, store them and what they stand for."""

    claim: Claim
    actor: Actor = Actor.WORKER
    effects: tuple[Effect, ...] = ()
    results: tuple[StepResult, ...] = ()
    memories: tuple[Memory, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Complete:
    """End the job with success; the stored enrich record becomes the conversation's."""

    claim: Claim
    actor: Actor = Actor.WORKER
    discard: bool = False
    holds_keys: bool = False


@dataclass(frozen=True, slots=True)
class Fail:
    """End the attempt with a failure; `jitter` is a random number of 0 to 999 thousandths."""

    claim: Claim
    code: FailureCode
    actor: Actor = Actor.WORKER
    task_retry: int | None = None
    jitter: int = 0


@dataclass(frozen=True, slots=True)
class Fence:
    """End a job whose conversation is gone or no longer ours; `claim` where one owns it."""

    job_id: str
    actor: Actor
    claim: Claim | None = None
    dead_claim: str | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """Give the job and the attempt back: nothing that this job did went wrong."""

    claim: Claim
    cause: ReleaseCause
    code: FailureCode
    actor: Actor = Actor.WORKER
    delay: int = 0
    jitter: int = 0
    task_retry: int | None = None
    lane_paused: bool = False


@dataclass(frozen=True, slots=True)
class PresentKeys:
    """Say that the user's keys are in hand again, for `uid`'s own conversation."""

    job_id: str
    uid: str
    conversation_id: str
    actor: Actor = Actor.LISTEN


@dataclass(frozen=True, slots=True)
class Park:
    """Put a due BYOK job, which nobody with keys took, back to waiting for keys."""

    job_id: str
    generation: int
    actor: Actor = Actor.RECONCILER
    dead_claim: str | None = None


@dataclass(frozen=True, slots=True)
class Redispatch:
    """Mint the next hand-over of a job that nobody runs; `code` says what made it necessary."""

    job_id: str
    generation: int
    cause: RedispatchCause = RedispatchCause.DUE
    actor: Actor = Actor.RECONCILER
    code: FailureCode | None = None
    delay: int = 0
    dead_claim: str | None = None


@dataclass(frozen=True, slots=True)
class Postpone:
    """Move the due time of a row that nobody runs and change nothing else."""

    job_id: str
    generation: int
    seen_due: Instant
    delay: int
    actor: Actor = Actor.DISPATCHER


@dataclass(frozen=True, slots=True)
class Evict:
    """Take the lease away from a live owner: break-glass, for the generation and epoch shown."""

    job_id: str
    generation: int
    epoch: int
    request_id: str
    actor: Actor = Actor.OPERATOR


@dataclass(frozen=True, slots=True)
class Replay:
    """Open a dead letter again, at the generation that the operator was shown."""

    job_id: str
    generation: int
    request_id: str
    actor: Actor = Actor.OPERATOR


@dataclass(frozen=True, slots=True)
class Resend:
    """Send one dropped delivery of a completed job once more.

    Without `result` it takes the delivery (dropped -> sent); with `result`, under the same
    request id, it notes what came of it.
    """

    job_id: str
    destination: str
    request_id: str
    result: Effect | None = None
    actor: Actor = Actor.OPERATOR


@dataclass(frozen=True, slots=True)
class Abandon:
    """Give up a job that has waited for keys longer than the policy's limit."""

    job_id: str
    actor: Actor = Actor.SWEEP


@dataclass(frozen=True, slots=True)
class Purge:
    """Delete the row and its step results."""

    job_id: str
    cause: PurgeCause
    actor: Actor = Actor.SWEEP


OwnedCommand = Checkpoint | Complete | Fail | Release
Command = (
    Admit
    | ClaimJob
    | Checkpoint
    | Complete
    | Fail
    | Fence
    | Release
    | PresentKeys
    | Park
    | Redispatch
    | Postpone
    | Evict
    | Replay
    | Resend
    | Abandon
    | Purge
)

_VERBS: dict[type[Any], Verb] = {
    Admit: Verb.ADMIT,
    ClaimJob: Verb.CLAIM,
    Checkpoint: Verb.CHECKPOINT,
    Complete: Verb.COMPLETE,
    Fail: Verb.FAIL,
    Fence: Verb.FENCE,
    Release: Verb.RELEASE,
    PresentKeys: Verb.PRESENT_KEYS,
    Park: Verb.PARK,
    Redispatch: Verb.REDISPATCH,
    Postpone: Verb.POSTPONE,
    Evict: Verb.EVICT,
    Replay: Verb.REPLAY,
    Resend: Verb.RESEND,
    Abandon: Verb.ABANDON,
    Purge: Verb.PURGE,
}


def verb_of(command: Command) -> Verb:
    """Return the verb that a command asks for."""
    return _VERBS[type(command)]
