"""Why a job stands where it stands, who can move it, and what to type: facts to ordered reasons.

Pure and total: every job that can be built has an answer. Reasons are words of a closed list with
the numbers, times and codes that belong to them; nothing here can hold content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from listen_finalization.domain.codes import (
    EffectCode,
    EffectState,
    FailureCode,
    Outcome,
    Status,
    Step,
)
from listen_finalization.domain.job import Instant, Job
from listen_finalization.domain.reasons import ADVICE, SENTENCES, Reason


class Presence(StrEnum):
    """Whether a dispatcher runs for the store that the job is in."""

    RUNS = "runs"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Mover(StrEnum):
    """Who can move the job from where it stands."""

    DISPATCHER = "dispatcher"
    OWNER = "owner"
    USER = "user"
    OPERATOR = "operator"
    NOBODY = "nobody"


class Next(StrEnum):
    """What to type, as arguments of `listen-finalization`; `JOB` stands for the id."""

    START = "up"
    WATCH = "jobs explain JOB"
    RUNNING = "jobs list --status leased"
    HISTORY = "jobs history JOB"
    CONFIGURATION = "check"
    DESTINATIONS = "destinations list"
    NOTHING = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known: the row, the store's time, the budget, and who is alive.

    `owner_dead`: the process behind the row's claim is provably dead.
    """

    job: Job
    now: Instant
    max_attempts: int
    dispatcher: Presence = Presence.UNKNOWN
    owner_dead: bool = False


@dataclass(frozen=True, slots=True)
class Because:
    """One reason with what belongs to it."""

    reason: Reason
    code: FailureCode | EffectCode | None = None
    at: Instant | None = None
    count: int | None = None

    def sentence(self, when: Callable[[Instant], str]) -> str:
        """Return the reason as a sentence; `when` writes an instant."""
        at = "at no known time" if self.at is None else when(self.at)
        code = self.code or "no code"
        return SENTENCES[self.reason].format(code=code, at=at, count=self.count)

    @property
    def advice(self) -> str | None:
        """What to look at for the code, where it is one of a failure."""
        return ADVICE[self.code] if isinstance(self.code, FailureCode) else None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reasons, most decisive first, who can move the job, and what to type next."""

    reasons: tuple[Because, ...]
    movers: tuple[Mover, ...]
    next: Next


def explain(facts: Facts) -> Explanation:
    """Say why the job is not running (or that it is), who can move it and what to type."""
    explained = _EXPLAIN[facts.job.status](facts)
    notes = (*explained.reasons, *_notes(facts.job))
    return Explanation(notes, explained.movers, explained.next)


def _queued(facts: Facts) -> Explanation:
    job, due = facts.job, facts.job.reconcile_after_at
    if job.requires_byok:
        over = due is not None and due <= facts.now
        reason = Reason.SESSION_OVER if over else Reason.KEYS_PRESENTED
        return _dispatched(facts, (Because(reason, at=due),), Mover.USER, Next.WATCH)
    reasons = [_wait(job, facts.now)]
    if job.attempt_count >= facts.max_attempts:
        reasons.append(Because(Reason.BUDGET_SPENT, count=job.attempt_count))
    elif job.attempt_count:
        reasons.append(Because(Reason.ATTEMPTS_USED, count=job.attempt_count))
    due_now = due is not None and due <= facts.now
    return _dispatched(facts, tuple(reasons), None, Next.RUNNING if due_now else Next.WATCH)


def _wait(job: Job, now: Instant) -> Because:
    """Say what a queued job waits for."""
    due, code = job.reconcile_after_at, job.failure_code
    if due is not None and due <= now:
        return Because(Reason.DUE, code, due)
    if code in _ENVIRONMENT:
        return Because(Reason.ENVIRONMENT_WAIT, code, due)
    return Because(Reason.SCHEDULED if code is None else Reason.BACKING_OFF, code, due)


_ENVIRONMENT = frozenset(
    {
        FailureCode.ENVIRONMENT_PROVIDER,
        FailureCode.ENVIRONMENT_CREDENTIALS,
        FailureCode.ENVIRONMENT_CONFIGURATION,
        FailureCode.ENVIRONMENT_STORE,
        FailureCode.ENVIRONMENT_SLOTS,
        FailureCode.LANE_PAUSED,
    }
)


def _dispatched(
    facts: Facts, reasons: tuple[Because, ...], mover: Mover | None, following: Next
) -> Explanation:
    """Explain what a dispatcher moves; where none runs, that comes first."""
    others = () if mover is None else (mover,)
    if facts.dispatcher is Presence.ABSENT:
        first = (Because(Reason.NOBODY_DISPATCHES), *reasons)
        return Explanation(first, (Mover.OPERATOR, *others), Next.START)
    return Explanation(reasons, (*others, Mover.DISPATCHER), following)


def _leased(facts: Facts) -> Explanation:
    job, end = facts.job, facts.job.lease_expires_at
    last = job.attempt_count >= facts.max_attempts
    counted = Because(
        Reason.LAST_ATTEMPT if last else Reason.ATTEMPTS_USED, count=job.attempt_count
    )
    if facts.owner_dead:
        return _dispatched(facts, (Because(Reason.OWNER_DEAD), counted), None, Next.WATCH)
    if end is not None and end <= facts.now:
        expired = Because(Reason.LEASE_EXPIRED, at=end)
        return _dispatched(facts, (expired, counted), Mover.OWNER, Next.WATCH)
    return Explanation((Because(Reason.RUNNING, at=end), counted), (Mover.OWNER,), Next.WATCH)


def _blocked(facts: Facts) -> Explanation:
    code = facts.job.failure_code
    refused = code is FailureCode.KEYS_REJECTED
    reason = Because(Reason.KEYS_REFUSED if refused else Reason.KEYS_NEEDED, code)
    reasons = (reason, Because(Reason.NEVER_PLATFORM_KEYS))
    return Explanation(reasons, (Mover.USER,), Next.HISTORY)


def _dead_letter(facts: Facts) -> Explanation:
    job = facts.job
    given_up = job.outcome is Outcome.ABANDONED
    reason = Reason.GIVEN_UP if given_up else Reason.BURIED
    buried = Because(reason, job.failure_code, job.updated_at, job.attempt_count)
    configured = job.failure_code in _ENVIRONMENT
    following = Next.CONFIGURATION if configured else Next.HISTORY
    return Explanation((buried, Because(Reason.REPLAY_ONLY)), (Mover.OPERATOR,), following)


def _completed(facts: Facts) -> Explanation:
    job = facts.job
    reason = _ENDINGS.get(job.outcome, Reason.ENDED) if job.outcome else Reason.ENDED
    enriched = job.effect(Step.ENRICH)
    discarded = enriched is not None and enriched.code is EffectCode.DISCARDED
    if reason is Reason.DONE and discarded:
        reason = Reason.DISCARDED
    reasons = (Because(reason, job.failure_code, job.completed_at), *_dropped(job))
    following = Next.DESTINATIONS if len(reasons) > 1 else Next.NOTHING
    return Explanation(reasons, (Mover.NOBODY,), following)


_ENDINGS = {
    Outcome.SUCCESS: Reason.DONE,
    Outcome.FENCED: Reason.FENCED,
    Outcome.ABANDONED: Reason.ENDED_GIVEN_UP,
}


def _dropped(job: Job) -> Iterator[Because]:
    """Name each kind of dropped delivery with how many there are of it."""
    dropped = [e.code for e in job.deliveries if e.state is EffectState.DROPPED]
    for code in sorted(set(dropped), key=str):
        yield Because(Reason.DELIVERIES_DROPPED, code, count=dropped.count(code))


def _notes(job: Job) -> Iterator[Because]:
    """Add what explains the numbers of any row."""
    if job.replay_count:
        yield Because(Reason.REPLAYED, count=job.replay_count)
    if job.releases:
        yield Because(Reason.GIVEN_BACK, count=job.releases)
    if any(effect.code is EffectCode.RESULT_SHORTENED for effect in job.effects):
        yield Because(Reason.SHORTENED)


_EXPLAIN: dict[Status, Callable[[Facts], Explanation]] = {
    Status.QUEUED: _queued,
    Status.LEASED: _leased,
    Status.BLOCKED_BYOK: _blocked,
    Status.DEAD_LETTER: _dead_letter,
    Status.COMPLETED: _completed,
}
