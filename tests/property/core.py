"""The store of the model: rows and conversation interned as numbers, every decision taken once.

`NOW` stands still. A clock step moves the instants of the rows instead, and what `decide` cannot
see (how long ago, which history) is cut off, so that equal futures are equal numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from listen_finalization.domain.codes import (
    Actor,
    EffectCode,
    EffectState,
    RefusalCode,
    Status,
    Step,
    Verb,
)
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import Answer, Decision, Probe, Probed, Refused
from listen_finalization.domain.job import Effect, HistoryEntry, IllegalJobError, Instant, Job
from listen_finalization.domain.machine import decide
from listen_finalization.domain.policy import Policy

from .invariants import broken_by_step
from .orders import (
    ABANDON,
    ADMIT,
    CLAIM,
    COMPLETE,
    FAIL,
    NOW,
    PARK,
    REDISPATCH,
    RELEASE,
    REVISION_OF,
    Order,
    command_of,
)
from .view import StepView

Rows = tuple[int, ...]
Edge = tuple[Verb, Status | None, Status | None]

_PROBING = frozenset({CLAIM, COMPLETE, FAIL, RELEASE, PARK, REDISPATCH, ABANDON})
ENRICH_STORED, CHUNK_STORED, BARE_STORED = 1, 2, 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an order did to the rows and the conversation, and which invariants that broke.

    `revision` is the row that was written, `kind` 0 refused, 1 repeated, 2 changed; `out` says
    that the model has no room for the revision that the decision needs.
    """

    rows: Rows
    conversation: int
    kind: int = 0
    did: Verb | None = None
    code: RefusalCode | None = None
    revision: int = 0
    leased: bool = False
    wrote_conversation: bool = False
    publish: bool = False
    drop: bool = False
    stored: int = 0
    broken: tuple[str, ...] = ()
    edges: tuple[Edge, ...] = ()
    out: bool = False


def _shifted(value: Instant | None, by: int, floor: int) -> Instant | None:
    return None if value is None else Instant(max(value - by, floor))


def canonical(job: Job, policy: Policy, by: int = 0) -> Job:
    """Return the row `by` later, with everything gone that no decision can tell apart."""
    updated = NOW
    if job.status is Status.BLOCKED_BYOK and policy.abandon_after is not None:
        updated = Instant(max(job.updated_at - by, NOW - policy.abandon_after))
    if any(effect.state is EffectState.SENT for effect in job.effects) and job.terminal:
        updated = Instant(max(job.updated_at - by, NOW - policy.resend_limit))
    last = job.history[-1]
    return replace(
        job,
        created_at=NOW,
        updated_at=updated,
        dispatched_at=NOW,
        leased_at=NOW if job.leased_at is not None else None,
        lease_expires_at=_shifted(job.lease_expires_at, by, NOW - 1),
        reconcile_after_at=_shifted(job.reconcile_after_at, by, NOW - 1),
        completed_at=_shifted(job.completed_at, by, NOW - policy.retention),
        last_task_retry=None,
        failure_code=None,
        replay_count=0,
        effects=tuple(_line(e) for e in job.effects),
        history=(HistoryEntry(NOW, last.verb, None, job.status, 1, 0, Actor.WORKER),),
    )


def _line(effect: Effect) -> Effect:
    code = effect.code if effect.code is EffectCode.DISCARDED else None
    return Effect(effect.step, effect.state, effect.destination, code)


class Core:
    """Interns rows and conversations, and remembers what each order does to them."""

    def __init__(self, policy: Policy, revisions: int) -> None:
        self.policy = policy
        self.revisions = revisions
        self.jobs: list[Job | None] = [None]
        self.conversations: list[Conversation | None] = [None]
        self._job_numbers: dict[Job, int] = {}
        self._conversation_numbers: dict[Conversation, int] = {}
        self._outcomes: dict[tuple[Rows, int, Order], Outcome] = {}
        self._later: dict[tuple[int, int], int] = {}

    def intern(self, job: Job | None) -> int:
        """Return the number of a row, cut to what decides."""
        if job is None:
            return 0
        small = canonical(job, self.policy)
        number = self._job_numbers.get(small)
        if number is None:
            number = self._job_numbers[small] = len(self.jobs)
            self.jobs.append(small)
        return number

    def intern_conversation(self, conversation: Conversation | None) -> int:
        """Return the number of a conversation."""
        if conversation is None:
            return 0
        small = replace(
            conversation, admitted_at=NOW if conversation.admitted_at is not None else None
        )
        number = self._conversation_numbers.get(small)
        if number is None:
            number = self._conversation_numbers[small] = len(self.conversations)
            self.conversations.append(small)
        return number

    def later(self, rows: Rows, by: int) -> Rows:
        """Return the rows after a clock step of `by`; a negative step sets the clock back."""
        return tuple([self._row_later(number, by) if number else 0 for number in rows])

    def _row_later(self, number: int, by: int) -> int:
        known = self._later.get((number, by))
        if known is None:
            job = self.jobs[number]
            assert job is not None
            known = self.intern(canonical(job, self.policy, by))
            self._later[(number, by)] = known
        return known

    def apply(self, rows: Rows, conversation: int, order: Order) -> Outcome:
        """Decide an order as a store does, or recall what it came to."""
        key = (rows, conversation, order)
        outcome = self._outcomes.get(key)
        if outcome is None:
            outcome = self._outcomes[key] = self._placed(rows, conversation, order)
        return outcome

    def _placed(self, rows: Rows, conversation: int, order: Order) -> Outcome:
        """Decide on the one row alone where no other can matter, so that it is done once."""
        revision = order[1]
        if order[0] == ADMIT or (order[0] in _PROBING and self.revisions > 1):
            return self._decided(rows, conversation, order)
        alone = tuple([row if at == revision else 0 for at, row in enumerate(rows)])
        if alone == rows:
            return self._decided(rows, conversation, order)
        local = self.apply(alone, conversation, order)
        after = list(rows)
        after[revision] = local.rows[revision]
        return replace(local, rows=tuple(after))

    def _decided(self, rows: Rows, number: int, order: Order) -> Outcome:
        found = {revision: self.jobs[row] for revision, row in enumerate(rows) if row}
        conversation = self.conversations[number]
        try:
            answer, probed = self.ask(found, conversation, order)
        except IllegalJobError:
            return Outcome(rows, number, broken=("no_decision_builds_an_illegal_job",))
        if isinstance(answer, Probe):
            return Outcome(rows, number, out=True)
        if isinstance(answer, Refused):
            met = found.get(_named(order, conversation))
            view = StepView(command_of(order), answer, met, None, conversation, self.policy)
            return Outcome(rows, number, code=answer.code, broken=broken_by_step(view))
        return self._written(rows, number, order, answer, probed, found)

    def ask(
        self,
        found: dict[int, Job | None],
        conversation: Conversation | None,
        order: Order,
    ) -> tuple[Answer | Probe, Probed | None]:
        """Loop over probes; a Probe comes back where the model has no such revision."""
        job = found.get(_named(order, conversation))
        probed = None
        while True:
            answer = decide(job, conversation, command_of(order), NOW, self.policy, probed)
            if not isinstance(answer, Probe) or answer.revision > self.revisions:
                return answer, probed
            probed = Probed(answer.revision, found.get(answer.revision))

    def _written(
        self,
        rows: Rows,
        number: int,
        order: Order,
        answer: Decision,
        probed: Probed | None,
        found: dict[int, Job | None],
    ) -> Outcome:
        conversation = self.conversations[number]
        after = answer.conversation if answer.conversation is not None else conversation
        revision = order[1] or (answer.job.finalization_revision if answer.job else 0)
        before = found.get(revision)
        stored, numbers = dict(found), list(rows)
        if answer.changed:
            stored[revision] = answer.job
            numbers[revision] = self.intern(answer.job)
        if answer.successor is not None:
            born = answer.successor.finalization_revision
            stored[born] = answer.successor
            numbers[born] = self.intern(answer.successor)
        view = StepView(
            command_of(order),
            answer,
            before,
            after,
            conversation,
            self.policy,
            present=found.get(_named(order, conversation)),
        )
        broken = broken_by_step(view) + self._repeat_faults(stored, after, order, answer)
        ends = answer.job.status if answer.job is not None else None
        return Outcome(
            tuple(numbers),
            self.intern_conversation(after),
            kind=2 if answer.changed else 1,
            did=answer.did,
            revision=revision,
            leased=answer.did is Verb.CLAIM and ends is Status.LEASED,
            wrote_conversation=answer.conversation is not None,
            publish=answer.publish,
            drop=answer.drop_results,
            stored=sum(_bit(r.step, r.chunk) for r in answer.results),
            broken=broken,
            edges=_edges(view, answer),
        )

    def _repeat_faults(
        self,
        stored: dict[int, Job | None],
        conversation: Conversation | None,
        order: Order,
        first: Decision,
    ) -> tuple[str, ...]:
        """Send the same order again at the same moment, as after an unknown commit."""
        try:
            again, _ = self.ask(stored, conversation, order)
        except IllegalJobError:
            return ("repeat_writes_nothing",)
        if isinstance(again, Probe):
            return ("repeat_writes_nothing",)
        if isinstance(again, Decision) and _writes(again) and not _same_content(first, again):
            return ("repeat_writes_nothing",)
        if again.job != first.job:
            return ("repeat_meets_the_same_job",)
        if isinstance(again, Refused) or again.did is not first.did:
            return ("repeat_gives_the_same_answer",)
        return ()


def _writes(answer: Decision) -> bool:
    tables = (answer.conversation, answer.successor, answer.results, answer.memories)
    return answer.changed or answer.publish or answer.drop_results or any(tables)


def _same_content(first: Decision, again: Decision) -> bool:
    """The stated exception: a checkpoint that carries content stores the same content again."""
    carried = bool(first.results or first.memories or first.did is Verb.CHECKPOINT)
    return carried and again == first


def _bit(step: Step, chunk: int) -> int:
    return (ENRICH_STORED, CHUNK_STORED, BARE_STORED)[chunk] if step is Step.ENRICH else 0


def _named(order: Order, conversation: Conversation | None) -> int:
    """Return the revision of the row that the store reads for an order."""
    if order[0] != ADMIT:
        return order[1]
    if conversation is None or conversation.job_id is None:
        return 0
    return REVISION_OF[conversation.job_id]


def _edges(view: StepView, answer: Decision) -> tuple[Edge, ...]:
    before = view.before.status if view.before is not None else None
    after = answer.job.status if answer.job is not None else None
    if not answer.changed:
        return ((answer.did, before, after),) if answer.did is Verb.PRESENT_KEYS else ()
    edges: tuple[Edge, ...] = ((answer.did, before, after),)
    if answer.successor is not None:
        edges += ((Verb.ADMIT, None, answer.successor.status),)
    return edges
