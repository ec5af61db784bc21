"""Orders: commands packed as tuples of small numbers, so that states hash and compare quickly.

`command_of` unpacks one. Times need no packing: the world's `NOW` never moves, a clock step moves
the rows instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from listen_finalization.domain import commands as c
from listen_finalization.domain.codes import (
    Actor,
    EffectCode,
    EffectState,
    FailureCode,
    PurgeCause,
    RedispatchCause,
    ReleaseCause,
    Step,
)
from listen_finalization.domain.content import Memory
from listen_finalization.domain.identity import job_id
from listen_finalization.domain.job import Claim, Effect, Instant

Order = tuple[int, ...]

NOW = Instant(1_000)
UID = "u"
CONVERSATION = "c"
JOB_IDS = tuple(job_id(UID, CONVERSATION, revision) for revision in range(8))
REVISION_OF = {name: revision for revision, name in enumerate(JOB_IDS)}
DESTINATIONS = ("d1", "d2")

(
    ADMIT,
    CLAIM,
    CHECKPOINT,
    COMPLETE,
    FAIL,
    RELEASE,
    FENCE,
    PRESENT_KEYS,
    PARK,
    REDISPATCH,
    POSTPONE,
    EVICT,
    REPLAY,
    RESEND,
    ABANDON,
    PURGE,
) = range(16)
NAMES = (
    *("admit", "claim", "checkpoint", "complete", "fail", "release", "fence", "present_keys"),
    *("park", "redispatch", "postpone", "evict", "replay", "resend", "abandon", "purge"),
)
OWNED = frozenset({CHECKPOINT, COMPLETE, FAIL, RELEASE})

RENEW, ENRICH, DISCARDING, CHUNK, BARE, MEMORIES, SENT, ALL_DONE, ONE_DONE, ALL_DROPPED = range(10)
WHATS = (
    *("renew", "enrich", "enrich-discards", "chunk", "bare-result", "memories"),
    *("sent", "all-done", "one-done", "all-dropped"),
)

RELEASE_CAUSES = tuple(ReleaseCause)
REDISPATCH_CAUSES = tuple(RedispatchCause)
PURGE_CAUSES = tuple(PurgeCause)
REQUEUE = REDISPATCH_CAUSES.index(RedispatchCause.REQUEUE)
DUE = REDISPATCH_CAUSES.index(RedispatchCause.DUE)
LANE = REDISPATCH_CAUSES.index(RedispatchCause.LANE)
FAULT = REDISPATCH_CAUSES.index(RedispatchCause.ENVIRONMENT)
ENVIRONMENT = RELEASE_CAUSES.index(ReleaseCause.ENVIRONMENT)
ACCOUNT = PURGE_CAUSES.index(PurgeCause.ACCOUNT)
RETENTION = PURGE_CAUSES.index(PurgeCause.RETENTION)
FOREIGN = 1
"""The value of a claim's last number that makes the caller believe in another conversation."""


def claim_name(number: int) -> str:
    """Return the claim id, or request id, that `number` stands for."""
    return f"id-{number}"


def _claim(order: Order) -> Claim:
    return Claim(JOB_IDS[order[1]], order[2], order[3], claim_name(order[4]))


def _dead(number: int) -> str | None:
    return claim_name(number) if number else None


def _fanout(*states: EffectState) -> tuple[Effect, ...]:
    return tuple(
        Effect(Step.FANOUT, state, name)
        for name, state in zip(DESTINATIONS[: len(states)], states, strict=True)
    )


def _effects(what: int, destinations: int) -> tuple[Effect, ...]:
    done, pending = EffectState.DONE, EffectState.PENDING
    steps = {
        ENRICH: (Effect(Step.ENRICH, done, code=EffectCode.STORED),),
        DISCARDING: (Effect(Step.ENRICH, done, code=EffectCode.DISCARDED),),
        CHUNK: (Effect(Step.ENRICH, pending),),
        MEMORIES: (Effect(Step.MEMORIES, done, code=EffectCode.STORED),),
        SENT: _fanout(*[EffectState.SENT] * destinations),
        ALL_DONE: _fanout(*[done] * destinations),
        ONE_DONE: _fanout(done, *[pending] * (destinations - 1)),
        ALL_DROPPED: _fanout(*[EffectState.DROPPED] * destinations),
    }
    return steps.get(what, ())


def _checkpoint(order: Order) -> c.Command:
    what, destinations = order[5], order[6]
    results = {
        ENRICH: (c.StepResult(Step.ENRICH, "{}"),),
        DISCARDING: (c.StepResult(Step.ENRICH, "{}"),),
        CHUNK: (c.StepResult(Step.ENRICH, "{}", chunk=1),),
        BARE: (c.StepResult(Step.ENRICH, "{}", chunk=2),),
    }
    return c.Checkpoint(
        _claim(order),
        effects=_effects(what, destinations),
        results=results.get(what, ()),
        memories=(Memory("m"),) if what == MEMORIES else (),
    )


def _claim_job(order: Order) -> c.Command:
    _, revision, generation, number, keys, dead, foreign = order
    return c.ClaimJob(
        JOB_IDS[revision],
        generation,
        claim_name(number),
        holds_keys=bool(keys),
        uid="somebody" if foreign else UID,
        conversation_id=CONVERSATION,
        dead_claim=_dead(dead),
    )


def _retry(number: int) -> int | None:
    return None if number < 0 else number


def _fail(order: Order) -> c.Command:
    return c.Fail(_claim(order), FailureCode.PROVIDER_ERROR, task_retry=_retry(order[5]))


def _release(order: Order) -> c.Command:
    return c.Release(
        _claim(order),
        RELEASE_CAUSES[order[5]],
        FailureCode.ENVIRONMENT_PROVIDER,
        lane_paused=bool(order[6]),
    )


def _fence(order: Order) -> c.Command:
    owned = _claim(order) if order[4] else None
    return c.Fence(JOB_IDS[order[1]], Actor.WORKER, owned, _dead(order[5]))


def _redispatch(order: Order) -> c.Command:
    _, revision, generation, cause, dead = order
    return c.Redispatch(
        JOB_IDS[revision], generation, REDISPATCH_CAUSES[cause], dead_claim=_dead(dead)
    )


def _resend(order: Order) -> c.Command:
    _, revision, destination, request, note = order
    name = DESTINATIONS[destination]
    states = (None, EffectState.DONE, EffectState.DROPPED, EffectState.PENDING)
    state = states[note]
    result = Effect(Step.FANOUT, state, name) if state is not None else None
    return c.Resend(JOB_IDS[revision], name, claim_name(request), result)


_BUILDERS: dict[int, Callable[[Order], c.Command]] = {
    ADMIT: lambda o: c.Admit(
        UID, CONVERSATION, holds_keys=bool(o[2]), force_process=bool(o[3]), adopt=bool(o[4])
    ),
    CLAIM: _claim_job,
    CHECKPOINT: _checkpoint,
    COMPLETE: lambda o: c.Complete(_claim(o), discard=bool(o[5]), holds_keys=bool(o[6])),
    FAIL: _fail,
    RELEASE: _release,
    FENCE: _fence,
    PRESENT_KEYS: lambda o: c.PresentKeys(JOB_IDS[o[1]], "somebody" if o[2] else UID, CONVERSATION),
    PARK: lambda o: c.Park(JOB_IDS[o[1]], o[2], dead_claim=_dead(o[3])),
    REDISPATCH: _redispatch,
    POSTPONE: lambda o: c.Postpone(JOB_IDS[o[1]], o[2], Instant(o[3]), o[4]),
    EVICT: lambda o: c.Evict(JOB_IDS[o[1]], o[2], o[3], claim_name(o[4])),
    REPLAY: lambda o: c.Replay(JOB_IDS[o[1]], o[2], claim_name(o[3])),
    RESEND: _resend,
    ABANDON: lambda o: c.Abandon(JOB_IDS[o[1]]),
    PURGE: lambda o: c.Purge(JOB_IDS[o[1]], PURGE_CAUSES[o[2]]),
}


@cache
def command_of(order: Order) -> c.Command:
    """Build the command that a packed order stands for."""
    return _BUILDERS[order[0]](order)


def spell(order: Order) -> str:
    """Write an order for a trace: its verb, then the numbers as packed."""
    words = [NAMES[order[0]], *map(str, order[1:])]
    if order[0] == CHECKPOINT:
        words[5] = WHATS[order[5]]
    if order[0] == RELEASE:
        words[5] = RELEASE_CAUSES[order[5]].value
    if order[0] == REDISPATCH:
        words[3] = REDISPATCH_CAUSES[order[3]].value
    return " ".join(words)
