"""Contract 17.4 as a search: from any state, healthy people and machines bring every job home.

The continuation forgets all actors (they died), lets the clock reach the next due time, lets the
reconciler take what is due, and a healthy worker run what was handed over.
"""

from __future__ import annotations

from listen_finalization.domain.codes import (
    ConversationStatus,
    EffectCode,
    EffectState,
    RefusalCode,
    Status,
    Step,
)
from listen_finalization.domain.job import Job

from .core import Core, Rows
from .orders import (
    ADMIT,
    ALL_DONE,
    CHECKPOINT,
    CLAIM,
    COMPLETE,
    DUE,
    ENRICH,
    FENCE,
    MEMORIES,
    NOW,
    PARK,
    PRESENT_KEYS,
    REDISPATCH,
    SENT,
    Order,
)
from .view import ours

MAX_ROUNDS = 60
_HEALTHY = 98
Home = tuple[Rows, int]


class Healthy:
    """Runs continuations and remembers the stores from which one came home."""

    def __init__(self, core: Core, destinations: int) -> None:
        self.core = core
        self.destinations = destinations
        self._home: set[Home] = set()

    def stuck(self, rows: Rows, conversation: int) -> str | None:
        """Return the rule that a continuation breaks, None when every job comes home."""
        path: list[Home] = []
        home = (rows, conversation)
        longest = 4 * max(
            self.core.policy.handover_limit,
            self.core.policy.session_limit,
            self.core.policy.retry_floor,
            self.core.policy.lease,
        )
        for _ in range(MAX_ROUNDS):
            if home in self._home:
                self._home.update(path)
                return None
            path.append(home)
            wait = self._wait(home[0])
            if wait > longest:
                return "due_time_comes_within_bounds"
            if wait > 0:
                home = (self.core.later(home[0], wait), home[1])
                continue
            later = self._moved(home)
            if later is None:
                self._home.update(path)
                return None
            if later == home:
                return "due_row_can_be_moved"
            home = later
        return "healthy_run_comes_home"

    def _open(self, rows: Rows) -> list[Job]:
        jobs = (self.core.jobs[number] for number in rows)
        return [job for job in jobs if job is not None and not job.status.terminal]

    def _wait(self, rows: Rows) -> int:
        """Return how long the reconciler still waits: 0 where something can be done now."""
        dues = [job.reconcile_after_at for job in self._open(rows)]
        times = [due - NOW for due in dues if due is not None]
        return max(min(times), 0) if times and None not in dues else 0

    def _moved(self, home: Home) -> Home | None:
        """Let somebody healthy move a row; None when nothing is left to do."""
        conversation = self.core.conversations[home[1]]
        for job in self._open(home[0]):
            if job.status is not Status.BLOCKED_BYOK:
                if job.reconcile_after_at is not None and job.reconcile_after_at <= NOW:
                    return self._taken(home, job)
                continue
            if not ours(conversation, job):
                return self._apply(home, (FENCE, job.finalization_revision, 0, 0, 0, 0))
            woken = self._apply(home, (PRESENT_KEYS, job.finalization_revision, 0))
            return self._run(woken, job.finalization_revision, 1)
        if self._open(home[0]):
            return home
        lost = (
            conversation is not None
            and conversation.status is ConversationStatus.PROCESSING
            and not conversation.deleted
            and not conversation.discarded
            and conversation.has_content
        )
        if not lost:
            return None
        order = (ADMIT, 0, 0, 0, 1)
        if self.core.apply(*home, order).out:
            return None
        return self._apply(home, order)

    def _apply(self, home: Home, order: Order) -> Home:
        outcome = self.core.apply(*home, order)
        return (outcome.rows, outcome.conversation)

    def _taken(self, home: Home, job: Job) -> Home:
        """Let the reconciler take a due row, and a worker run what that hands over."""
        revision, generation = job.finalization_revision, job.dispatch_generation
        order = (REDISPATCH, revision, generation, DUE, 0)
        if job.requires_byok or self.core.apply(*home, order).code is RefusalCode.KEYS_REQUIRED:
            return self._apply(home, (PARK, revision, generation, 0))
        moved = self._apply(home, order)
        return moved if moved == home else self._run(moved, revision, 0)

    def _run(self, home: Home, revision: int, keys: int) -> Home:
        """Let a healthy worker claim a queued row and run it to its end."""
        job = self.core.jobs[home[0][revision]]
        if job is None or job.status is not Status.QUEUED:
            return home
        claim = (CLAIM, revision, job.dispatch_generation, _HEALTHY, keys, 0, 0)
        home = self._apply(home, claim)
        job = self.core.jobs[home[0][revision]]
        while job is not None and job.status is Status.LEASED:
            before = home
            home = self._apply(home, self._next(job, keys))
            job = self.core.jobs[home[0][revision]]
            if before == home:
                break
        return home

    def _next(self, job: Job, keys: int) -> Order:
        proof = (job.finalization_revision, job.dispatch_generation, job.lease_epoch, _HEALTHY)
        if not job.stored(Step.ENRICH):
            return (CHECKPOINT, *proof, ENRICH, self.destinations)
        line = job.effect(Step.ENRICH)
        if line is not None and line.code is EffectCode.DISCARDED:
            return (COMPLETE, *proof, 1, keys)
        if not job.stored(Step.MEMORIES):
            return (CHECKPOINT, *proof, MEMORIES, self.destinations)
        if not job.deliveries or any(e.state is EffectState.PENDING for e in job.deliveries):
            return (CHECKPOINT, *proof, SENT, self.destinations)
        if any(not e.final for e in job.deliveries):
            return (CHECKPOINT, *proof, ALL_DONE, self.destinations)
        return (COMPLETE, *proof, 0, keys)
