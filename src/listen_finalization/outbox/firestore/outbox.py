"""`ports.Outbox` on Firestore."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from listen_finalization.domain.codes import OPEN, Status
from listen_finalization.domain.commands import Command
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import Answer
from listen_finalization.domain.job import Instant, Job
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import (
    RowUnreadableError,
    StoreUnavailableError,
    ValueRefusedError,
)
from listen_finalization.outbox.firestore import queries, writes
from listen_finalization.outbox.firestore.attempts import repeated
from listen_finalization.outbox.firestore.commands import Commands
from listen_finalization.outbox.firestore.fields import Reading
from listen_finalization.outbox.firestore.jobs import decode_due, decode_job, due_of
from listen_finalization.outbox.firestore.names import last_part, nameable
from listen_finalization.outbox.firestore.places import Place, Places
from listen_finalization.outbox.firestore.rpc import Document, Rpc
from listen_finalization.outbox.firestore.sight import Looking
from listen_finalization.outbox.firestore.values import encode_instant
from listen_finalization.outbox.paging import (
    MOST_LISTED,
    cursor_behind,
    place_of,
    refuse_limit,
)
from listen_finalization.ports import DuePage, DueRow, JobPage

_DUE = "reconcile_after_at"


class FirestoreOutbox:
    """The jobs of one database, in `conversation_finalization_jobs`."""

    def __init__(self, rpc: Rpc, policy: Policy) -> None:
        self._rpc = rpc
        self._looking = Looking(rpc, Places())
        self._commands = Commands(rpc, policy, self._looking)

    async def apply(self, command: Command) -> Answer:
        return await self._commands.apply(command)

    async def get(self, job_id: str) -> Job | None:
        document = await repeated(lambda _: self._row(job_id))
        return None if document is None else decode_job(document)

    async def find(self, uid: str, conversation_id: str) -> tuple[Conversation, Job | None] | None:
        if not nameable(uid, conversation_id):
            return None
        return await repeated(lambda _: self._standing((uid, conversation_id)))

    async def _standing(self, place: Place) -> tuple[Conversation, Job | None] | None:
        sight = await self._looking.at_conversation(place, whole=False)
        seen, job = sight.conversation, sight.job
        if seen is None:
            return None
        return seen, job if job is not None and seen.names(job) else None

    async def due(self, limit: int, *, after: DueRow | None = None) -> DuePage:
        """Ask for one row more than the page, and compare with the time of that very answer.

        `next_due` is None as well where the page ends before a row that is not due yet.
        """
        refuse_limit(limit)
        place = None if after is None else (after.due, self._rpc.names.job(after.job_id))
        found = await repeated(lambda _: self._rpc.query(queries.due(limit + 1, place)))
        dated = [(due_of(d) or Instant(0), d) for d in found.documents.values()]
        rows = [decode_due(document, due) for due, document in dated if due <= found.now]
        later = [due for due, _ in dated if due > found.now]
        return DuePage(tuple(rows[:limit]), found.now, min(later, default=None))

    async def leases(self, limit: int) -> tuple[DueRow, ...]:
        refuse_limit(limit)
        found = await repeated(lambda _: self._rpc.query(queries.leases(limit)))
        return tuple(decode_due(d, due_of(d) or Instant(0)) for d in found.documents.values())

    async def list(
        self, *, status: Status | None = None, limit: int = 50, cursor: str | None = None
    ) -> JobPage:
        refuse_limit(limit, MOST_LISTED)
        place = None if cursor is None else self._place(cursor)
        asked = queries.newest(status, limit + 1, place)
        found = await repeated(lambda _: self._rpc.query(asked))
        documents = list(found.documents.values())
        read = [_readable(document) for document in documents[:limit]]
        jobs = tuple(job for job in read if isinstance(job, Job))
        lost = tuple(job for job in read if isinstance(job, str))
        more = _cursor(documents[limit - 1]) if len(documents) > limit else None
        return JobPage(jobs, more, lost)

    async def counts(self) -> Mapping[Status, int]:
        counted = [status for status in Status if status is not Status.COMPLETED]
        totals = await asyncio.gather(*(self._count(status) for status in counted))
        return dict(zip(counted, totals, strict=True))

    async def _count(self, status: Status) -> int:
        return await repeated(lambda _: self._rpc.count(queries.count(status)))

    async def oldest(self) -> Mapping[Status, Instant]:
        statuses = sorted(OPEN)
        found = await asyncio.gather(*(self._oldest(status) for status in statuses))
        return {s: made for s, made in zip(statuses, found, strict=True) if made is not None}

    async def _oldest(self, status: Status) -> Instant | None:
        found = await repeated(lambda _: self._rpc.query(queries.oldest(status)))
        made = [Reading(d.fields).instant("created_at") for d in found.documents.values()]
        return made[0] if made else None

    async def set_aside(self, job_id: str, seen_due: Instant, delay: int) -> bool:
        """Move the due time by a guarded write; see `ports.Outbox`.

        A commit of unknown outcome is found again by the time that it wrote.
        """
        encode_instant(seen_due)
        if not nameable(job_id):
            return False
        unknown: set[Instant | None] = set()

        async def attempt(_: int) -> bool:
            name = self._rpc.names.job(job_id)
            found = await self._rpc.read((name,), (_DUE,))
            document = found.of(name)
            due = None if document is None else _due_anyhow(document)
            if document is None or due != seen_due:
                return due in unknown
            after = Instant(found.now + delay)
            moved = writes.update(document, {_DUE: encode_instant(after)}, (_DUE,))
            try:
                await self._rpc.commit([moved])
            except StoreUnavailableError:
                unknown.add(after)
                raise
            return True

        return await repeated(attempt)

    async def _row(self, job_id: str) -> Document | None:
        if not nameable(job_id):
            return None
        name = self._rpc.names.job(job_id)
        return (await self._rpc.read((name,))).of(name)

    def _place(self, cursor: str) -> tuple[int, str]:
        """Return where a cursor stands. Raises `ValueRefusedError` for one that no page gave."""
        created, job_id = place_of(cursor)
        if not nameable(job_id):
            raise ValueRefusedError
        return created, self._rpc.names.job(job_id)


def _readable(document: Document) -> Job | str:
    """Return the job, or the id of a row that cannot be decoded."""
    try:
        return decode_job(document)
    except RowUnreadableError:
        return last_part(document.name)


def _cursor(document: Document) -> str:
    created = Reading(document.fields).required_instant("created_at")
    return cursor_behind(created, last_part(document.name))


def _due_anyhow(document: Document) -> Instant | None:
    """Return the due time; None also where it is no time."""
    try:
        return due_of(document)
    except RowUnreadableError:
        return None
