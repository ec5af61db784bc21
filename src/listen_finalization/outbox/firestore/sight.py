"""What a command sees: the documents that its decision depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from listen_finalization.domain.commands import (
    Admit,
    Checkpoint,
    ClaimJob,
    Command,
    OwnedCommand,
    Postpone,
    PresentKeys,
    Purge,
)
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import Instant, Job
from listen_finalization.outbox.firestore.jobs import JOB_FIELDS, decode_job
from listen_finalization.outbox.firestore.names import nameable
from listen_finalization.outbox.firestore.places import Place, Places
from listen_finalization.outbox.firestore.rpc import Document, Found, Rpc
from listen_finalization.outbox.firestore.size import field_size
from listen_finalization.outbox.firestore.talk import (
    DECIDING,
    decode_conversation,
    says_content,
)
from listen_finalization.outbox.firestore.values import encode

_MASK = tuple(dict.fromkeys((*JOB_FIELDS, *DECIDING)))


@dataclass(frozen=True, slots=True)
class Sight:
    """One look: values, and the documents that they came from.

    `split` says that the documents came from two calls, so that they need not have been true at
    one instant; `whole` that the conversation was read with its content and the step results.
    """

    now: Instant
    job: Job | None = None
    job_document: Document | None = None
    conversation: Conversation | None = None
    conversation_document: Document | None = None
    results: Document | None = None
    split: bool = False
    whole: bool = False


def alone(command: Command) -> bool:
    """Whether the command depends on its job row only: renewals, due times and deletions."""
    if isinstance(command, Checkpoint):
        return not (command.effects or command.results or command.memories)
    return isinstance(command, Postpone | Purge)


def job_of(command: Command) -> str:
    """Return the job that a command other than an admission names."""
    if isinstance(command, OwnedCommand):
        return command.claim.job_id
    if isinstance(command, Admit):
        raise TypeError
    return command.job_id


class Looking:
    """Reads what commands depend on. Raises `RowUnreadableError` and the faults of the store."""

    def __init__(self, rpc: Rpc, places: Places) -> None:
        self._rpc = rpc
        self._places = places

    async def at_conversation(self, place: Place, *, whole: bool, incoming: int = 0) -> Sight:
        """Look at a conversation and at the job that it names, both in one call.

        Which job that is, is guessed from the last time; a conversation that names another is
        looked at again.
        """
        job_id = self._places.guess(place)
        while True:
            found = await self._read(place, job_id, whole=whole)
            sight = self._of_conversation(found, place, job_id, whole=whole, incoming=incoming)
            document = sight.conversation_document
            named = _named(sight)
            if document is not None and not whole and not says_content(document):
                whole = True
            elif named == job_id:
                break
            job_id = named
        if job_id is not None:
            self._places.learn_named(place, job_id)
        return sight

    def _of_conversation(
        self, found: Found, place: Place, job_id: str | None, *, whole: bool, incoming: int
    ) -> Sight:
        """Build the sight; the row of a wrong guess is left out unread, it may be damaged."""
        document = found.of(self._rpc.names.conversation(*place))
        if document is None:
            return Sight(found.now, whole=whole)
        seen = decode_conversation(*place, document, whole=whole, incoming=incoming)
        sight = Sight(found.now, conversation=seen, conversation_document=document, whole=whole)
        if job_id is None or seen.job_id != job_id:
            return sight
        job, row, results = self._of_job(found, job_id)
        return replace(sight, job=job, job_document=row, results=results)

    async def at_command(self, command: Command, *, whole: bool) -> Sight:
        """Look at the job that a command names and, where it matters, at its conversation."""
        job_id = job_of(command)
        if not nameable(job_id):
            return Sight(await self.now())
        if alone(command):
            found = await self._read(None, job_id, whole=False)
            job, row, _ = self._of_job(found, job_id)
            return Sight(found.now, job, row)
        place = self._places.of(job_id) or _hint(command)
        found = await self._read(place, job_id, whole=whole)
        job, row, results = self._of_job(found, job_id)
        sight = Sight(found.now, job, row, results=results, whole=whole)
        if job is None:
            return sight
        told = (job.uid, job.conversation_id)
        if told != place:
            found = await self._read(told, None, whole=whole)
            sight = replace(sight, now=found.now, split=True)
        document = found.of(self._rpc.names.conversation(*told))
        if document is None:
            return sight
        seen = decode_conversation(*told, document, whole=whole)
        return replace(sight, conversation=seen, conversation_document=document)

    def learn(self, decision: Decision) -> None:
        """Remember the places of what a decision wrote."""
        for job in (decision.job, decision.successor):
            if job is not None:
                self._places.learn(job.job_id, (job.uid, job.conversation_id))
        named = decision.conversation
        if named is not None and named.job_id is not None:
            self._places.learn_named((named.uid, named.conversation_id), named.job_id)

    async def row(self, job_id: str) -> tuple[Job | None, Document | None]:
        """Read one more job row."""
        found = await self._rpc.read((self._rpc.names.job(job_id),))
        document = found.of(self._rpc.names.job(job_id))
        return (None, None) if document is None else (decode_job(document), document)

    async def present(self, names: Sequence[str]) -> frozenset[str]:
        """Say which of these documents are there."""
        return frozenset((await self._rpc.read(names, ("created_at",))).documents)

    async def now(self) -> Instant:
        """Return the store's time by looking at nothing."""
        return (await self._rpc.read((self._rpc.names.job("none"),), ("status",))).now

    async def _read(self, place: Place | None, job_id: str | None, *, whole: bool) -> Found:
        names = []
        if job_id is not None:
            names.append(self._rpc.names.job(job_id))
            if whole:
                names.append(self._rpc.names.results(job_id))
        if place is not None:
            names.append(self._rpc.names.conversation(*place))
        return await self._rpc.read(names, None if whole else _MASK)

    def _of_job(
        self, found: Found, job_id: str
    ) -> tuple[Job | None, Document | None, Document | None]:
        """Return the job with its row and its step results, as far as they were found."""
        row = found.of(self._rpc.names.job(job_id))
        if row is None:
            return None, None, None
        job = decode_job(row)
        self._places.learn(job_id, (job.uid, job.conversation_id))
        return job, row, found.of(self._rpc.names.results(job_id))


def _named(sight: Sight) -> str | None:
    """Return the id of the job that the conversation names, where a document can have it."""
    named = None if sight.conversation is None else sight.conversation.job_id
    return named if named is not None and nameable(named) else None


def _hint(command: Command) -> Place | None:
    """Return the conversation that the caller believes the job to be about."""
    if not isinstance(command, ClaimJob | PresentKeys):
        return None
    if command.uid is None or command.conversation_id is None:
        return None
    place = (command.uid, command.conversation_id)
    return place if nameable(*place) else None


def context_size(command: Admit) -> int:
    """Return the bytes that the context of an admission adds to its conversation."""
    if command.context is None:
        return 0
    value = encode({"calendar_meeting_context": dict(command.context)})
    return field_size("external_data", value)
