"""What the actors of a world may send from a state; each group is a word of `Scenario.acts`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from listen_finalization.domain.codes import EffectCode, EffectState, Status, Step
from listen_finalization.domain.job import Job

from .orders import (
    ABANDON,
    ACCOUNT,
    ADMIT,
    ALL_DONE,
    ALL_DROPPED,
    BARE,
    CHECKPOINT,
    CHUNK,
    CLAIM,
    COMPLETE,
    DESTINATIONS,
    DISCARDING,
    DUE,
    ENRICH,
    ENVIRONMENT,
    EVICT,
    FAIL,
    FAULT,
    FENCE,
    FOREIGN,
    LANE,
    MEMORIES,
    ONE_DONE,
    PARK,
    POSTPONE,
    PRESENT_KEYS,
    PURGE,
    REDISPATCH,
    RELEASE,
    RELEASE_CAUSES,
    RENEW,
    REPLAY,
    REQUEUE,
    RESEND,
    RETENTION,
    SENT,
    Order,
)
from .world import CONTENT, IDLE, LANES, OWN, UNSURE, Edge, Slot, State, World

Group = Callable[[World, State], Iterator[Edge]]


def _rows(world: World, state: State) -> Iterator[tuple[int, Job]]:
    for revision in range(1, world.scenario.revisions + 1):
        job = world.job(state, revision)
        if job is not None:
            yield revision, job


def _idle(state: State) -> int:
    return 0 if state.slots[0] == IDLE else -1


def _admit(keys: int, force: int = 0, adopt: int = 0) -> Group:
    def group(world: World, state: State) -> Iterator[Edge]:
        yield from world.issue(state, (ADMIT, 0, keys, force, adopt))

    return group


def _claims(keys: int, foreign: int = 0) -> Group:
    """Deliver the row's present generation, an earlier and a later one."""

    def group(world: World, state: State) -> Iterator[Edge]:
        slot = _idle(state)
        if slot < 0:
            return
        number = world.fresh_id(state)
        for revision, job in _rows(world, state):
            now = job.dispatch_generation
            for generation in (now - 1, now, now + 1):
                order = (CLAIM, revision, generation, number, keys, 0, foreign)
                yield from world.issue(state, order, slot)

    return group


def _dead(world: World, state: State) -> Iterator[Edge]:
    """Let a process that was proved dead lose its lease at once."""
    believed = {slot[4] for slot in state.slots if slot[0] == OWN}
    doubtful = any(slot[0] == UNSURE for slot in state.slots)
    slot = _idle(state)
    for revision, job in _rows(world, state):
        if job.claim_id is None or doubtful or int(job.claim_id[3:]) in believed:
            continue
        dead, generation = int(job.claim_id[3:]), job.dispatch_generation
        yield from world.issue(state, (REDISPATCH, revision, generation, DUE, dead))
        yield from world.issue(state, (PARK, revision, generation, dead))
        yield from world.issue(state, (FENCE, revision, generation, 0, 0, dead))
        if slot >= 0:
            number = world.fresh_id(state)
            order = (CLAIM, revision, generation, number, 0, dead, 0)
            yield from world.issue(state, order, slot)


def _owners(state: State) -> Iterator[tuple[int, Slot]]:
    for index, slot in enumerate(state.slots):
        if slot[0] == OWN:
            yield index, slot


def _view(world: World, state: State, slot: Slot) -> Job | None:
    """Return the row where the actor still owns it: then its own view is the row."""
    job = world.job(state, slot[1])
    if job is None or (job.dispatch_generation, job.lease_epoch) != slot[2:4]:
        return None
    same = job.claim_id == f"id-{slot[4]}" and job.status is Status.LEASED
    return job if same else None


def _discards(job: Job) -> bool:
    line = job.effect(Step.ENRICH)
    return line is not None and line.code is EffectCode.DISCARDED


def _next_steps(world: World, job: Job, slot: Slot) -> Iterator[int]:
    """Say which checkpoints an honest run takes next."""
    acts = world.scenario.acts
    if not job.stored(Step.ENRICH):
        yield ENRICH
        if "chunks" in acts:
            yield CHUNK
        if "discard_run" in acts:
            yield DISCARDING
        return
    if _discards(job):
        return
    if not job.stored(Step.MEMORIES):
        yield MEMORIES
        return
    names = DESTINATIONS[: world.scenario.destinations]
    lines = [job.effect(Step.FANOUT, name) for name in names]
    if all(line is not None and line.final for line in lines):
        return
    if slot[6]:
        yield from (ALL_DONE, ALL_DROPPED)
        if len(names) > 1:
            yield ONE_DONE
    elif any(line is None or line.state is not EffectState.SENT for line in lines) or not slot[6]:
        yield SENT


def _run(world: World, state: State) -> Iterator[Edge]:
    """Let every owner go on with its run; a thawed one, who owns no more, tries all it could."""
    for index, slot in _owners(state):
        proof, keys = slot[1:5], slot[5]
        job = _view(world, state, slot)
        if job is not None:
            whats = [*_next_steps(world, job, slot), RENEW]
        else:
            whats = [RENEW, ENRICH, MEMORIES, SENT, ALL_DONE]
        for what in whats:
            order: Order = (CHECKPOINT, *proof, what, world.scenario.destinations)
            yield from world.issue(state, order, index)
        if "bare" in world.scenario.acts:
            yield from world.issue(state, (CHECKPOINT, *proof, BARE, 1), index)
        if job is None or job.only_deliveries_open:
            yield from world.issue(state, (COMPLETE, *proof, 0, keys), index)
        elif _discards(job):
            yield from world.issue(state, (COMPLETE, *proof, 1, keys), index)
        yield from world.issue(state, (FENCE, *proof, 0), index)


def _fail(world: World, state: State) -> Iterator[Edge]:
    last = world.scenario.policy.max_attempts - 1
    for index, slot in _owners(state):
        for retry in (-1, last):
            yield from world.issue(state, (FAIL, *slot[1:5], retry), index)


def _release(world: World, state: State) -> Iterator[Edge]:
    for index, slot in _owners(state):
        for cause in range(len(RELEASE_CAUSES)):
            yield from world.issue(state, (RELEASE, *slot[1:5], cause, 0), index)
        if "pause" in world.scenario.acts:
            yield from world.issue(state, (RELEASE, *slot[1:5], ENVIRONMENT, 1), index)


def _repeat(world: World, state: State) -> Iterator[Edge]:
    """Let an actor that does not know what came of its order send it again."""
    for index, slot in enumerate(state.slots):
        if slot[0] == UNSURE:
            yield from world.issue(state, slot[3:], index)


def _crash(world: World, state: State) -> Iterator[Edge]:
    for index, slot in enumerate(state.slots):
        if slot != IDLE:
            yield world.crash(state, index)


def _reconcile(world: World, state: State) -> Iterator[Edge]:
    """Let a reconciler take rows as it sees them, or as it saw them a generation ago."""
    slot = _idle(state) if "doubt" in world.scenario.acts else -1
    for revision, job in _rows(world, state):
        for generation in (job.dispatch_generation - 1, job.dispatch_generation):
            yield from world.issue(state, (PARK, revision, generation, 0), slot)
            yield from world.issue(state, (REDISPATCH, revision, generation, DUE, 0), slot)
        yield from world.issue(state, (FENCE, revision, job.dispatch_generation, 0, 0, 0))


def _handover(world: World, state: State) -> Iterator[Edge]:
    """Let a delivery meet a paused lane or a broken environment before its claim."""
    for revision, job in _rows(world, state):
        for cause in (LANE, FAULT):
            generation = job.dispatch_generation
            yield from world.issue(state, (REDISPATCH, revision, generation, cause, 0))


def _postpone(world: World, state: State) -> Iterator[Edge]:
    for revision, job in _rows(world, state):
        due, generation = job.reconcile_after_at or 0, job.dispatch_generation
        for seen, of in ((due, generation), (due + 1, generation), (due, generation - 1)):
            yield from world.issue(state, (POSTPONE, revision, of, seen, 4))


def _keys(world: World, state: State) -> Iterator[Edge]:
    for revision, _ in _rows(world, state):
        yield from world.issue(state, (PRESENT_KEYS, revision, 0))


def _foreign(world: World, state: State) -> Iterator[Edge]:
    for revision, _ in _rows(world, state):
        yield from world.issue(state, (PRESENT_KEYS, revision, FOREIGN))
    yield from _claims(0, FOREIGN)(world, state)


def _evict(world: World, state: State) -> Iterator[Edge]:
    slot, number = _idle(state), world.fresh_id(state)
    for revision, job in _rows(world, state):
        now, epoch = job.dispatch_generation, job.lease_epoch
        for shown in ((now, epoch), (now - 1, epoch), (now, epoch - 1)):
            yield from world.issue(state, (EVICT, revision, *shown, number), slot)


def _replay(world: World, state: State) -> Iterator[Edge]:
    slot, number = _idle(state), world.fresh_id(state)
    for revision, job in _rows(world, state):
        for generation in (job.dispatch_generation - 1, job.dispatch_generation):
            yield from world.issue(state, (REPLAY, revision, generation, number), slot)


def _requeue(world: World, state: State) -> Iterator[Edge]:
    slot = _idle(state)
    for revision, job in _rows(world, state):
        order = (REDISPATCH, revision, job.dispatch_generation, REQUEUE, 0)
        yield from world.issue(state, order, slot)


def _resend(world: World, state: State) -> Iterator[Edge]:
    """Let an operator take a delivery, and let whoever took one note what came of it."""
    number = world.fresh_id(state)
    for revision, job in _rows(world, state):
        held = int(job.claim_id[3:]) if job.claim_id is not None else number
        for place in range(world.scenario.destinations):
            yield from world.issue(state, (RESEND, revision, place, number, 0))
            for note in (1, 2, 3):
                yield from world.issue(state, (RESEND, revision, place, held, note))
            yield from world.issue(state, (RESEND, revision, place, number, 1))


def _abandon(world: World, state: State) -> Iterator[Edge]:
    for revision, _ in _rows(world, state):
        yield from world.issue(state, (ABANDON, revision))


def _retention(world: World, state: State) -> Iterator[Edge]:
    for revision, _ in _rows(world, state):
        yield from world.issue(state, (PURGE, revision, RETENTION))


def _account(world: World, state: State) -> Iterator[Edge]:
    """Delete an account: its conversation first, then every row of it."""
    gone = world.lane(state, "gone")
    after = gone.state if gone is not None else state
    for revision, _ in _rows(world, state):
        for edge in world.issue(after, (PURGE, revision, ACCOUNT)):
            yield edge
            yield from world.issue(edge.state, (PURGE, revision, ACCOUNT))


GROUPS: dict[str, Group] = {
    "admit": _admit(0),
    "admit_keys": _admit(1),
    "force": _admit(0, force=1),
    "adopt": _admit(0, adopt=1),
    "claim": _claims(0),
    "claim_keys": _claims(1),
    "run": _run,
    "fail": _fail,
    "release": _release,
    "unsure": _repeat,
    "crash": _crash,
    "dead": _dead,
    "reconcile": _reconcile,
    "handover": _handover,
    "postpone": _postpone,
    "keys": _keys,
    "foreign": _foreign,
    "evict": _evict,
    "replay": _replay,
    "requeue": _requeue,
    "resend": _resend,
    "abandon": _abandon,
    "retention": _retention,
    "account": _account,
}
MODIFIERS = frozenset({"chunks", "bare", "discard_run", "pause", "doubt"})


def steps(world: World, state: State) -> Iterator[Edge]:
    """Return every transition that the scenario has from a state."""
    acts = world.scenario.acts
    for name, group in GROUPS.items():
        if name in acts:
            yield from group(world, state)
    for kind in (*LANES, *CONTENT):
        if kind in acts:
            edge = world.lane(state, kind)
            if edge is not None:
                yield edge
    for by in world.scenario.ticks:
        edge = world.tick(state, by)
        if edge is not None:
            yield edge
