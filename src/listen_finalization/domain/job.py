"""The job row as a value that cannot be built in an illegal state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

from listen_finalization.domain.codes import (
    Actor,
    EffectCode,
    EffectState,
    FailureCode,
    Outcome,
    Status,
    Step,
    Verb,
)

Instant = NewType("Instant", int)
"""A moment of the store's clock: microseconds since 1970-01-01T00:00:00Z."""

SCHEMA_VERSION = 1
MAX_DELIVERIES = 32
MAX_EFFECTS = MAX_DELIVERIES + 2
MAX_HISTORY = 32
MAX_COUNT = 2**31 - 1
SECOND = 1_000_000


def seconds(value: float) -> int:
    """Turn seconds into the microseconds that `Instant` counts."""
    return round(value * SECOND)


class IllegalJobError(ValueError):
    """A job was to be built in a state that the table does not have."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One step's or one delivery's ledger line; a destination is named by id, never by address."""

    step: Step
    state: EffectState
    destination: str | None = None
    code: EffectCode | None = None
    tries: int = 0

    @property
    def final(self) -> bool:
        return self.state in (EffectState.DONE, EffectState.DROPPED)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One transition, content-free; `count` equal neighbours are folded into the newest."""

    at: Instant
    verb: Verb
    before: Status | None
    after: Status
    generation: int
    epoch: int
    actor: Actor
    code: FailureCode | None = None
    count: int = 1

    def same_kind(self, other: HistoryEntry) -> bool:
        mine = (self.verb, self.before, self.after, self.actor, self.code)
        return mine == (other.verb, other.before, other.after, other.actor, other.code)


@dataclass(frozen=True, slots=True)
class Claim:
    """The proof of ownership that every write of a run carries: all three must match the row."""

    job_id: str
    generation: int
    epoch: int
    claim_id: str


@dataclass(frozen=True, slots=True)
class Job:
    """One row of `conversation_finalization_jobs`; the fields are those of contract 3.

    `content_version` is the version of the conversation that the run reads, noted by the claim.
    Raises `IllegalJobError` when the fields contradict each other.
    """

    job_id: str
    uid: str
    conversation_id: str
    finalization_revision: int
    status: Status
    requires_byok: bool
    force_process: bool
    created_at: Instant
    updated_at: Instant
    dispatched_at: Instant
    dispatch_generation: int = 1
    lease_epoch: int = 0
    claim_id: str | None = None
    leased_at: Instant | None = None
    lease_expires_at: Instant | None = None
    content_version: int | None = None
    attempt_count: int = 0
    handovers: int = 0
    releases: int = 0
    last_task_retry: int | None = None
    replay_count: int = 0
    failure_code: FailureCode | None = None
    outcome: Outcome | None = None
    completed_at: Instant | None = None
    reconcile_after_at: Instant | None = None
    effects: tuple[Effect, ...] = ()
    history: tuple[HistoryEntry, ...] = ()
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        status = self.status
        leased = status is Status.LEASED
        terminal = status is Status.COMPLETED or status is Status.DEAD_LETTER
        waits = terminal or status is Status.BLOCKED_BYOK
        if (
            (self.lease_expires_at is not None) is not leased
            or (self.leased_at is not None) is not leased
            or (self.outcome is not None) is not terminal
            or (self.completed_at is not None) is not (status is Status.COMPLETED)
            or (self.reconcile_after_at is None) is not waits
            or (leased and (self.claim_id is None or self.content_version is None))
            or (status is Status.BLOCKED_BYOK and not self.requires_byok)
            or self.finalization_revision < 1
            or self.dispatch_generation < 1
            or min(self.lease_epoch, self.attempt_count, self.handovers, self.releases) < 0
            or self.attempt_count > self.lease_epoch
            or len(self.effects) > MAX_EFFECTS
            or len(self.history) > MAX_HISTORY
        ):
            raise IllegalJobError

    @property
    def terminal(self) -> bool:
        return self.status.terminal

    @property
    def claim(self) -> Claim:
        """The claim that now owns the row; only a leased row has one."""
        if self.status is not Status.LEASED or self.claim_id is None:
            raise IllegalJobError
        return Claim(self.job_id, self.dispatch_generation, self.lease_epoch, self.claim_id)

    def effect(self, step: Step, destination: str | None = None) -> Effect | None:
        """Return the ledger line of a step or of one destination's delivery."""
        for effect in self.effects:
            if effect.step is step and effect.destination == destination:
                return effect
        return None

    def stored(self, step: Step) -> bool:
        """Say whether the step's result is stored, so that it is not run again."""
        effect = self.effect(step)
        return effect is not None and effect.final

    @property
    def has_results(self) -> bool:
        """Whether a step's result, which was made of `content_version`, is stored."""
        return any(effect.step is not Step.FANOUT for effect in self.effects)

    @property
    def settled_deliveries(self) -> tuple[Effect, ...]:
        """The deliveries that are not sent again, not even in a new budget."""
        return tuple(effect for effect in self.deliveries if effect.final)

    @property
    def deliveries(self) -> tuple[Effect, ...]:
        return tuple(e for e in self.effects if e.step is Step.FANOUT)

    @property
    def only_deliveries_open(self) -> bool:
        """Whether enrich and memories are stored, so that only deliveries can still be owed."""
        return self.stored(Step.ENRICH) and self.stored(Step.MEMORIES)
