"""The surroundings of the core: a store, actors that die, thaw and repeat, and other lanes.

A state is a tuple of small numbers: the conversation, the rows by revision, the step results kept
beside them, the actors' slots, and what a rule must remember. Every write goes through
`core.Core.apply`. A queue needs no state: it may deliver any generation at any time, so losing,
doubling and delaying are all in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from listen_finalization.domain.codes import (
    ConversationStatus,
    EffectState,
    RefusalCode,
    Status,
    Step,
    Verb,
)
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.job import Effect, Job
from listen_finalization.domain.policy import Policy

from .core import ENRICH_STORED, Core, Outcome, Rows
from .orders import (
    ADMIT,
    ALL_DONE,
    CHECKPOINT,
    CLAIM,
    CONVERSATION,
    DESTINATIONS,
    NAMES,
    NOW,
    ONE_DONE,
    OWNED,
    SENT,
    UID,
    Order,
    spell,
)

Slot = tuple[int, ...]
IDLE: Slot = (0,)
OWN, UNSURE = 1, 2

LANES = ("delete", "gone", "remade", "discard", "other", "again", "elsewhere", "back")
CONTENT = ("append", "mark")


class Ghost(NamedTuple):
    """What the rules remember: the newest version that a finalize asked for, whether another lane
    wrote the conversation last, and per revision which destinations answered 2xx."""

    asked: int
    touched: int
    answered: tuple[int, ...]


class State(NamedTuple):
    """One state of the world."""

    conversation: int
    rows: Rows
    results: tuple[int, ...]
    slots: tuple[Slot, ...]
    ghost: Ghost


class Label(NamedTuple):
    """What led to a state: an actor's order and whether the actor saw its answer, or an event."""

    what: str
    order: Order = ()
    mode: str = ""

    def __str__(self) -> str:
        return f"{self.what}{' ' + self.mode if self.mode else ''}" + (
            f": {spell(self.order)}" if self.order else ""
        )


class Edge(NamedTuple):
    """One transition of the world."""

    label: Label
    state: State
    broken: tuple[str, ...] = ()
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A bounded world: which actions exist, and how far rows and content may go.

    A state beyond `generation`, `epoch` or `version` is checked and not continued. Every name
    in `acts` is one of `actions.GROUPS`, of `LANES` or of `CONTENT`.
    """

    name: str
    acts: frozenset[str]
    policy: Policy
    starts: tuple[Conversation | None, ...]
    ticks: tuple[int, ...] = (1, 4)
    revisions: int = 2
    generation: int = 3
    epoch: int = 2
    version: int = 2
    slots: int = 2
    destinations: int = 1


class World:
    """Makes steps of one scenario: the actors' orders, the other lanes' writes, the clock."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.core = Core(scenario.policy, scenario.revisions)
        self._lane: dict[tuple[int, str], int] = {}

    def starts(self) -> Iterator[State]:
        """Return the states that a scenario begins in."""
        count = self.scenario.revisions + 1
        for conversation in self.scenario.starts:
            yield State(
                self.core.intern_conversation(conversation),
                (0,) * count,
                (0,) * count,
                (IDLE,) * self.scenario.slots,
                Ghost(0, 0, (0,) * count),
            )

    def job(self, state: State, revision: int) -> Job | None:
        return self.core.jobs[state.rows[revision]]

    def within(self, state: State) -> bool:
        """Say whether a state is inside the bounds and is continued from."""
        bounds = self.scenario
        for number in state.rows:
            job = self.core.jobs[number]
            if job is not None and (
                job.dispatch_generation > bounds.generation or job.lease_epoch > bounds.epoch
            ):
                return False
        return True

    def issue(self, state: State, order: Order, slot: int = -1) -> Iterator[Edge]:
        """Let an actor send an order: its answer is seen, lost, or the order itself is late.

        `slot` is the actor that sends it; -1 one that never repeats.
        """
        outcome = self.core.apply(state.rows, state.conversation, order)
        if outcome.out:
            return
        after, broken = self._landed(state, order, outcome)
        mine = state.slots[slot] if slot >= 0 else IDLE
        who = f"actor {slot}" if slot >= 0 else "somebody"
        seen = (
            _seat(after, slot, _next_slot(mine, order, outcome, self.core)) if slot >= 0 else after
        )
        yield Edge(Label(who, order, "repeats" if mine[0] == UNSURE else ""), seen, broken, outcome)
        if slot < 0 or "unsure" not in self.scenario.acts:
            return
        if any(other[0] == UNSURE for other in state.slots):
            return
        doubt = (UNSURE, *_hands(mine), *order)
        yield Edge(Label(who, order, "never hears of"), _seat(after, slot, doubt))
        if outcome.kind:
            yield Edge(Label(who, order, "is late with"), _seat(state, slot, doubt))

    def _landed(
        self, state: State, order: Order, outcome: Outcome
    ) -> tuple[State, tuple[str, ...]]:
        """Lay an outcome over the tables beside the rows."""
        revision, broken = outcome.revision, outcome.broken
        results, ghost = state.results, state.ghost
        if outcome.publish and not results[revision] & ENRICH_STORED:
            broken += ("publish_finds_the_record",)
        if outcome.stored:
            results = _put(results, revision, results[revision] | outcome.stored)
        if outcome.drop:
            results = _put(results, revision, 0)
        if order[0] == ADMIT and outcome.did is Verb.ADMIT:
            seen = self.core.conversations[state.conversation]
            ghost = ghost._replace(asked=seen.content_version if seen is not None else 0)
        if outcome.wrote_conversation:
            ghost = ghost._replace(touched=0)
        if order[0] == CHECKPOINT and outcome.did is Verb.CHECKPOINT:
            again, ghost = self._delivered(ghost, order, outcome)
            broken += again
        if outcome.did is Verb.PURGE:
            ghost = ghost._replace(answered=_put(ghost.answered, revision, 0))
        if results is state.results and ghost is state.ghost and outcome.rows is state.rows:
            return state._replace(conversation=outcome.conversation), broken
        return State(outcome.conversation, outcome.rows, results, state.slots, ghost), broken

    def _delivered(
        self, ghost: Ghost, order: Order, outcome: Outcome
    ) -> tuple[tuple[str, ...], Ghost]:
        """Remember who answered 2xx, and notice a call to somebody who did."""
        revision, job = outcome.revision, self.core.jobs[outcome.rows[outcome.revision]]
        held = ghost.answered[revision]
        states = [job.effect(Step.FANOUT, name) if job else None for name in DESTINATIONS]
        if order[5] == SENT:
            called = _mask(states, EffectState.SENT)
            return (("delivered_destination_is_not_called_again",) if called & held else ()), ghost
        if order[5] in (ALL_DONE, ONE_DONE):
            now = held | _mask(states, EffectState.DONE)
            return (), ghost._replace(answered=_put(ghost.answered, revision, now))
        return (), ghost

    def tick(self, state: State, by: int) -> Edge | None:
        """Step the clock; it is set back only as far as it may be wrong: one step from honest."""
        if by < 0 and any(self._far(number) for number in state.rows):
            return None
        return Edge(Label(f"clock {by:+d}"), state._replace(rows=self.core.later(state.rows, by)))

    def _far(self, number: int) -> bool:
        job = self.core.jobs[number]
        if job is None:
            return False
        last = max(job.reconcile_after_at or 0, job.lease_expires_at or 0, job.completed_at or 0)
        return last > NOW + self.scenario.policy.handover_limit

    def crash(self, state: State, slot: int) -> Edge:
        """Let an actor forget all it held."""
        return Edge(Label(f"actor {slot} dies"), _seat(state, slot, IDLE))

    def lane(self, state: State, kind: str) -> Edge | None:
        """Let another lane, or a session, write the conversation; None where it would not."""
        number = self._lane.get((state.conversation, kind))
        if number is None:
            number = self._rewritten(state.conversation, kind)
            self._lane[state.conversation, kind] = number
        if number == state.conversation:
            return None
        ghost = state.ghost if kind in CONTENT else state.ghost._replace(asked=0, touched=1)
        return Edge(Label(f"lane: {kind}"), state._replace(conversation=number, ghost=ghost))

    def _rewritten(self, number: int, kind: str) -> int:
        seen = self.core.conversations[number]
        if seen is None:
            return self.core.intern_conversation(started() if kind == "remade" else None)
        status = ConversationStatus
        later: dict[str, Callable[[], Conversation | None]] = {
            "delete": lambda: replace(seen, deleted=True),
            "gone": lambda: None,
            "remade": lambda: seen,
            "discard": lambda: replace(seen, discarded=True),
            "other": lambda: replace(seen, status=status.OTHER),
            "again": lambda: replace(seen, status=status.IN_PROGRESS, discarded=False),
            "elsewhere": lambda: replace(seen, status=status.COMPLETED),
            "back": lambda: replace(seen, status=status.PROCESSING),
            "append": lambda: self._appended(seen),
            "mark": lambda: replace(seen, requires_byok=True),
        }
        return self.core.intern_conversation(later[kind]())

    def _appended(self, seen: Conversation) -> Conversation:
        if seen.deleted or seen.discarded or seen.content_version >= self.scenario.version:
            return seen
        return replace(seen, content_version=seen.content_version + 1, has_content=True)

    def fresh_id(self, state: State) -> int:
        """Mint an id that nobody holds: one that all forgot is as good as a new one."""
        held = {_id_of_slot(slot) for slot in state.slots}
        for number in state.rows:
            job = self.core.jobs[number]
            if job is not None and job.claim_id is not None:
                held.add(int(job.claim_id[3:]))
        return next(number for number in range(1, 99) if number not in held)


def started(**fields: object) -> Conversation:
    """Return the conversation that a scenario starts from: a session that just ended."""
    start = Conversation(UID, CONVERSATION, ConversationStatus.IN_PROGRESS, 1, True)
    return replace(start, **fields)  # type: ignore[arg-type]


def _put(values: tuple[int, ...], at: int, value: int) -> tuple[int, ...]:
    return (*values[:at], value, *values[at + 1 :])


def _mask(lines: Sequence[Effect | None], state: EffectState) -> int:
    return sum(
        1 << bit for bit, line in enumerate(lines) if line is not None and line.state is state
    )


def _seat(state: State, index: int, slot: Slot) -> State:
    """Give a slot its new value; slots are alike, so their order is none."""
    slots = list(state.slots)
    slots[index] = slot
    slots.sort()
    return state._replace(slots=tuple(slots))


def _hands(slot: Slot) -> tuple[int, int]:
    """Return whether an actor holds keys, and a proof for a fanout."""
    if slot[0] == OWN:
        return slot[5], slot[6]
    return (slot[1], slot[2]) if slot[0] == UNSURE else (0, 0)


def _id_of_slot(slot: Slot) -> int:
    if slot[0] == OWN:
        return slot[4]
    if slot[0] != UNSURE:
        return 0
    place = {"claim": 3, "evict": 4, "fence": 4, "replay": 3, "resend": 3}
    if slot[3] in OWNED:
        return slot[7]
    name = NAMES[slot[3]]
    return slot[3 + place[name]] if name in place else 0


def _next_slot(mine: Slot, order: Order, outcome: Outcome, core: Core) -> Slot:
    """Say what an actor believes after it saw an answer."""
    keys, proved = _hands(mine)
    if order[0] == CLAIM:
        job = core.jobs[outcome.rows[order[1]]]
        if not outcome.leased or job is None or job.status is not Status.LEASED:
            return IDLE
        return (OWN, order[1], order[2], job.lease_epoch, order[3], order[4], 0)
    if order[0] == CHECKPOINT and outcome.did is Verb.CHECKPOINT:
        told = order[5]
        proved = 1 if told == SENT else 0 if told > SENT else proved
        return (OWN, *order[1:5], keys, proved)
    if outcome.code in (RefusalCode.DELIVERIES_OPEN, RefusalCode.CONVERSATION_OURS):
        return (OWN, *order[1:5], keys, proved)
    return IDLE
