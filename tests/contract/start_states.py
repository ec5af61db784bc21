"""Start states of one conversation, made by the model and laid into Firestore as they are."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from listen_finalization.domain.codes import (
    Actor,
    EffectState,
    FailureCode,
    PurgeCause,
    Step,
)
from listen_finalization.domain.commands import (
    Admit,
    Checkpoint,
    ClaimJob,
    Command,
    Complete,
    Fail,
    Park,
    PresentKeys,
    Purge,
    StepResult,
)
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import Answer, Decision
from listen_finalization.domain.job import Effect, Instant, Job, seconds
from listen_finalization.outbox.conformance import POLICY
from listen_finalization.outbox.firestore import writes
from listen_finalization.outbox.firestore.jobs import encode_job
from listen_finalization.outbox.firestore.names import Names
from listen_finalization.outbox.firestore.sight import alone
from listen_finalization.outbox.firestore.values import encode, encode_instant

from .commands_at_hand import of_others, of_owner
from .model import Model

NAME = "c1"
RECORD = '{"title":"Ship"}'
DAY = seconds(86_400)
ENRICHED = (Effect(Step.ENRICH, EffectState.DONE),)
STORED = (*ENRICHED, Effect(Step.MEMORIES, EffectState.DONE))
SENT = Effect(Step.FANOUT, EffectState.SENT, "d1")


@dataclass
class World:
    """The model of one user's store, with its clock and the memories that commands stored."""

    uid: str
    now: int
    model: Model = field(init=False)
    memories: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.model = Model(POLICY, self.uid)

    @property
    def job(self) -> Job:
        """The row that the conversation names, else the highest revision there is."""
        held = self.model.conversations.get(NAME)
        named = self.model.jobs.get((held.job_id if held else None) or "")
        return named or max(self.model.jobs.values(), key=lambda job: job.finalization_revision)

    @property
    def conversation(self) -> Conversation:
        return self.model.conversations[NAME]

    def copy(self) -> World:
        twin = copy.copy(self)
        twin.memories = set(self.memories)
        twin.model = copy.copy(self.model)
        for name in ("jobs", "conversations", "results", "published"):
            setattr(twin.model, name, copy.deepcopy(getattr(self.model, name)))
        return twin

    def apply(self, command: Command) -> Answer:
        """Do a command as the store does: what depends on its row alone sees no conversation."""
        model = replace(self.model, conversations={}) if alone(command) else self.model
        answer = model.apply(command, Instant(self.now))
        if isinstance(answer, Decision) and answer.changed:
            self.memories.update(memory.text for memory in answer.memories)
        return answer

    def reshape(self, **changes: Any) -> None:
        """Change the conversation as the application would."""
        self.model.conversations[NAME] = replace(self.conversation, **changes)


def talked(world: World) -> None:
    world.model.append(NAME, byok=False)


def queued(world: World) -> None:
    talked(world)
    world.apply(Admit(world.uid, NAME))


def leased(world: World) -> None:
    queued(world)
    world.apply(ClaimJob(world.job.job_id, 1, "k1"))


def stored(world: World) -> None:
    leased(world)
    results = (StepResult(Step.ENRICH, RECORD),)
    world.apply(Checkpoint(world.job.claim, effects=ENRICHED, results=results))


def talked_again(before: Callable[[World], None]) -> Callable[[World], None]:
    def made(world: World) -> None:
        before(world)
        talked(world)

    return made


def after(before: Callable[[World], None], wait: int) -> Callable[[World], None]:
    def made(world: World) -> None:
        before(world)
        world.now += wait

    return made


def wished(world: World) -> None:
    talked_again(stored)(world)
    world.apply(Admit(world.uid, NAME))


def deliveries_open(world: World) -> None:
    """Everything but a delivery is stored, and the budget is spent: whoever finds it completes."""
    stored(world)
    world.apply(Checkpoint(world.job.claim, effects=(*STORED, SENT)))
    _spend_budget(world)


def _spend_budget(world: World) -> None:
    for number in range(2, POLICY.max_attempts + 1):
        world.now += POLICY.lease
        world.apply(ClaimJob(world.job.job_id, 1, f"k{number}"))
    world.now += POLICY.lease


def deliveries_open_and_wished(world: World) -> None:
    deliveries_open(world)
    talked(world)
    world.apply(Admit(world.uid, NAME))


def spent(world: World) -> None:
    leased(world)
    _spend_budget(world)


def completed(world: World) -> None:
    stored(world)
    world.apply(Complete(world.job.claim))


def dropped(world: World) -> None:
    deliveries_open(world)
    world.apply(ClaimJob(world.job.job_id, 1, "k9"))


def dead(world: World) -> None:
    leased(world)
    world.apply(Fail(world.job.claim, FailureCode.PROVIDER_ERROR, task_retry=9))


def blocked(world: World) -> None:
    world.model.append(NAME, byok=True)
    world.apply(Admit(world.uid, NAME))


def keys_presented(world: World) -> None:
    blocked(world)
    world.apply(PresentKeys(world.job.job_id, world.uid, NAME))


def keys_forgotten(world: World) -> None:
    keys_presented(world)
    world.now += POLICY.session_limit


def leased_with_keys(world: World) -> None:
    keys_presented(world)
    world.apply(ClaimJob(world.job.job_id, 1, "k1", holds_keys=True))


def parked(world: World) -> None:
    keys_forgotten(world)
    world.apply(Park(world.job.job_id, 1))


def deleted(world: World) -> None:
    stored(world)
    world.model.delete(NAME)


def made_again(before: Callable[[World], None]) -> Callable[[World], None]:
    """The application deletes the document and makes one of the same name; the rows stay."""

    def made(world: World) -> None:
        before(world)
        del world.model.conversations[NAME]
        talked(world)

    return made


def retired(world: World) -> None:
    completed(world)
    talked(world)
    world.apply(Purge(world.job.job_id, PurgeCause.ACCOUNT))


def orphaned(world: World) -> None:
    """Processing under a row that is gone."""
    queued(world)
    world.apply(Purge(world.job.job_id, PurgeCause.ACCOUNT))


def marked_late(world: World) -> None:
    """The user's keys came after the admission."""
    queued(world)
    world.model.append(NAME, byok=True)


STATES: Mapping[str, Callable[[World], None]] = {
    "talked": talked,
    "queued": queued,
    "queued, due": after(queued, POLICY.handover),
    "queued, more was said": talked_again(queued),
    "queued, marked late": marked_late,
    "leased": leased,
    "leased, expired": after(leased, POLICY.lease),
    "leased, more was said": talked_again(leased),
    "leased, stored, wished": wished,
    "leased, stored, wished, expired": after(wished, POLICY.lease),
    "leased, deliveries open, budget spent": deliveries_open,
    "leased, deliveries open, budget spent, wished": deliveries_open_and_wished,
    "leased, budget spent": spent,
    "leased with keys": leased_with_keys,
    "leased with keys, expired": after(leased_with_keys, POLICY.lease),
    "completed": completed,
    "completed, a delivery dropped": dropped,
    "completed, more was said": talked_again(completed),
    "completed, retired": after(completed, POLICY.retention),
    "completed and purged, more was said": retired,
    "dead letter": dead,
    "blocked": blocked,
    "blocked, old": after(blocked, DAY),
    "keys presented": keys_presented,
    "keys forgotten": keys_forgotten,
    "parked": parked,
    "deleted under a lease": deleted,
    "made again under a queued row": made_again(queued),
    "made again under a lease": made_again(stored),
    "made again after completion": made_again(completed),
    "orphaned": orphaned,
}


def laid(world: World, names: Names) -> list[Any]:
    """Return the writes that make the model's rows documents."""
    rows = [
        writes.create(names.job(job.job_id), encode_job(job)) for job in world.model.jobs.values()
    ]
    steps = [
        writes.create(names.results(key), {step: encode(chunks) for step, chunks in _by_step(held)})
        for key, held in world.model.results.items()
        if held
    ]
    talks = [
        writes.create(names.conversation(world.uid, name), _conversation(world, held))
        for name, held in world.model.conversations.items()
    ]
    return [*rows, *steps, *talks]


def _by_step(held: Mapping[tuple[Step, int], str]) -> list[tuple[str, dict[str, str]]]:
    found: dict[str, dict[str, str]] = {}
    for (step, chunk), payload in held.items():
        found.setdefault(step.value, {})[str(chunk)] = payload
    return list(found.items())


def _conversation(world: World, held: Conversation) -> dict[str, Any]:
    spoken = range(held.content_version)
    fields = {
        "status": held.status,
        "discarded": held.discarded,
        "deleted": held.deleted,
        "content_version": held.content_version,
        "has_content": held.has_content,
        "photo_count": 0,
        "language": "en",
        "finalization_requires_byok": held.requires_byok,
        "finalization_job_id": held.job_id,
        "finalization_revision": held.revision,
        "finalization_wanted_version": held.wanted_version,
        "transcript_segments": [{"id": f"s{n}", "text": "words"} for n in spoken],
    }
    published = world.model.published.get(held.conversation_id)
    if published is not None:
        fields["structured"] = json.loads(published)
    stored_fields = {name: encode(value) for name, value in fields.items() if value is not None}
    times = {"created_at": world.now, "finalization_admitted_at": held.admitted_at}
    return stored_fields | {k: encode_instant(v) for k, v in times.items() if v is not None}


@dataclass(frozen=True)
class Append:
    """Somebody speaks; `byok` also marks the conversation."""

    segment: str
    byok: bool = False


@dataclass(frozen=True)
class Delete:
    """The user deletes the conversation."""


Act = Command | Append | Delete


def acts(world: World, who: str) -> Mapping[str, Act]:
    """Return what anybody might do next, under ids of `who`."""
    told: dict[str, Act] = {
        "append": Append(f"said by {who}"),
        "append with keys": Append(f"said by {who}", byok=True),
        "delete": Delete(),
        "admit": Admit(world.uid, NAME, force_process=who == "a"),
        "admit with keys": Admit(world.uid, NAME, holds_keys=True),
        "adopt": Admit(world.uid, NAME, adopt=True, actor=Actor.SWEEP),
    }
    if world.model.jobs:
        told |= {**of_others(world.uid, world.job, who), **of_owner(world.job, who)}
    return told
