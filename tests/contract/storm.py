"""Processes that send random commands over bad lines, and the order in which the server took them.

Each accepted commit is noted with the command and the store time that it was decided on. The notes
in the order of their commit times are a serial history: the model must reach the same rows by it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from google.api_core.exceptions import ServiceUnavailable
from google.cloud.firestore_v1 import AsyncClient
from google.cloud.firestore_v1.types import firestore

from listen_finalization.domain.commands import Admit, Command
from listen_finalization.domain.content import Segment
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.identity import job_id
from listen_finalization.domain.job import Job, seconds
from listen_finalization.errors import (
    ConversationClosedError,
    StoreBusyError,
    StoreUnavailableError,
)
from listen_finalization.outbox.conformance import POLICY
from listen_finalization.outbox.firestore import FirestoreStore
from listen_finalization.outbox.firestore.values import instant_of

from .commands_at_hand import of_others, of_owner

UID = "ada"
REVISIONS = range(1, 5)
_WAITS = (0, seconds(1), POLICY.lease, POLICY.handover, POLICY.session_limit, POLICY.handover * 2)


@dataclass(frozen=True)
class Said:
    """New words in a conversation."""

    conversation_id: str
    segment: str
    byok: bool


@dataclass(frozen=True)
class Gone:
    """A conversation that its user deletes."""

    conversation_id: str


Act = Command | Said | Gone


@dataclass(frozen=True)
class Taken:
    """A commit that the server carried out, and what it was decided on."""

    at: int
    act: Act
    now: int


@dataclass
class Storm:
    """What all processes of a run share: chance, the clock's shift and the accepted commits."""

    chance: random.Random
    names: tuple[str, ...]
    faults: float
    shift: int = 0
    taken: list[Taken] = field(default_factory=list)
    late: list[asyncio.Task[None]] = field(default_factory=list)

    def pick(self, of: Any) -> Any:
        return self.chance.choice(of)

    def unlucky(self) -> bool:
        return self.chance.random() < self.faults


class Process:
    """A store of its own, one command at a time, over a line that loses, delays and reorders."""

    def __init__(self, storm: Storm, project: str, name: str) -> None:
        self._storm = storm
        self._name = name
        self._sent = 0
        self._known: dict[str, Job] = {}
        self._act: Act = Gone("")
        self._now = 0
        self.answers: list[object] = []
        client = AsyncClient(project=project)
        self.store = FirestoreStore(project, POLICY, client=client, shift=lambda: storm.shift)
        self._cut(client._firestore_api)
        self._note_times()

    def _cut(self, calls: Any) -> None:
        self._commit, self._read = calls.commit, calls.batch_get_documents
        calls.commit, calls.batch_get_documents = self.commit, self.read

    def _note_times(self) -> None:
        looking = self.store.outbox._looking
        for name in ("at_command", "at_conversation"):
            setattr(looking, name, self._noting(getattr(looking, name)))

    def _noting(self, look: Callable[..., Any]) -> Callable[..., Any]:
        async def looked(*given: Any, **named: Any) -> Any:
            sight = await look(*given, **named)
            self._now = sight.now
            return sight

        return looked

    async def read(self, **asked: Any) -> Any:
        if self._storm.unlucky():
            await asyncio.sleep(self._storm.chance.uniform(0, 0.02))
            if self._storm.unlucky():
                raise ServiceUnavailable("cut")  # type: ignore[no-untyped-call]
        return await self._read(**asked)

    async def commit(self, **asked: Any) -> Any:
        """Send a commit: as it should be, or lost, late, or behind others."""
        act, now = self._act, self._now
        fate = self._storm.pick(("request", "answer", "late", "slow"))
        if not self._storm.unlucky():
            return await self._carried_out(act, now, asked)
        wait = self._storm.chance.uniform(0, 0.05)
        if fate == "slow":
            await asyncio.sleep(wait)
            return await self._carried_out(act, now, asked)
        if fate == "answer":
            await self._carried_out(act, now, asked)
        if fate == "late":
            self._storm.late.append(asyncio.create_task(self._late(wait, act, now, asked)))
        raise ServiceUnavailable("cut")  # type: ignore[no-untyped-call]

    async def _late(self, wait: float, act: Act, now: int, asked: Any) -> None:
        await asyncio.sleep(wait)
        try:
            await self._carried_out(act, now, asked)
        except Exception:  # noqa: BLE001 - nobody is there to hear of it
            return

    async def _carried_out(self, act: Act, now: int, asked: Any) -> Any:
        answer = await self._commit(**asked)
        at = firestore.CommitResponse.pb(answer).commit_time
        self._storm.taken.append(Taken(instant_of(at), act, now))
        return answer

    async def run(self, count: int) -> None:
        """Send `count` random commands; what the line does to them is no failure."""
        for _ in range(count):
            if self._storm.chance.random() < 0.25:
                self._storm.shift += self._storm.pick(_WAITS)
            try:
                self.answers.append(await self.do(await self._chosen()))
            except (StoreUnavailableError, StoreBusyError, ConversationClosedError) as fault:
                self.answers.append(type(fault))

    async def do(self, act: Act) -> object:
        self._act = act
        talks = self.store.conversations
        match act:
            case Said():
                words = (Segment(act.segment, "a", 0.0, 1.0, "words"),)
                return await talks.append(UID, act.conversation_id, words, byok=act.byok)
            case Gone():
                return await talks.delete(UID, act.conversation_id)
        return await self.store.outbox.apply(act)

    async def _chosen(self) -> Act:
        self._sent += 1
        who, chance = f"{self._name}-{self._sent}", self._storm.chance
        conversation_id = self._storm.pick(self._storm.names)
        luck = chance.random()
        if luck < 0.15:
            return Said(conversation_id, who, chance.random() < 0.1)
        if luck < 0.16:
            return Gone(conversation_id)
        if luck < 0.35:
            return Admit(UID, conversation_id, holds_keys=chance.random() < 0.1)
        return await self._about(conversation_id, who)

    async def _about(self, conversation_id: str, who: str) -> Act:
        """Choose a command for a job as it is, or as this process remembers it."""
        job = await self._job(conversation_id)
        if job is None:
            return Admit(UID, conversation_id)
        owned = job.lease_epoch > 0 and self._storm.chance.random() < 0.6
        offered = dict(of_owner(job, who) if owned else of_others(UID, job, who))
        offered.pop("purge an account", None)
        chosen: Command = self._storm.pick(list(offered.values()))
        return chosen

    async def _job(self, conversation_id: str) -> Job | None:
        if conversation_id in self._known and self._storm.chance.random() < 0.3:
            return self._known[conversation_id]
        standing = await self.store.outbox.find(UID, conversation_id)
        job = standing[1] if standing is not None else None
        if job is None:
            return self._known.get(conversation_id)
        self._known[conversation_id] = job
        return job


def every_job(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(job_id(UID, name, revision) for name in names for revision in REVISIONS)


def changed(answer: object) -> bool:
    return isinstance(answer, Decision) and answer.changed
