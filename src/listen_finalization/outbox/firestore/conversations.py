"""`ports.Conversations` on Firestore: the application's documents, field by field."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from listen_finalization.domain.codes import ConversationStatus, Step
from listen_finalization.domain.content import Content, Segment
from listen_finalization.domain.job import Instant
from listen_finalization.errors import (
    ConversationClosedError,
    RowUnreadableError,
    StoreUnavailableError,
    ValueRefusedError,
)
from listen_finalization.outbox.firestore import queries, writes
from listen_finalization.outbox.firestore.attempts import repeated
from listen_finalization.outbox.firestore.fields import Fields, Reading
from listen_finalization.outbox.firestore.names import nameable
from listen_finalization.outbox.firestore.rpc import Document, Found, Rpc
from listen_finalization.outbox.firestore.size import MAX_DOCUMENT, SPARE, document_size
from listen_finalization.outbox.firestore.talk import (
    SEGMENTS,
    decode_content,
    decode_conversation,
    decode_memories,
    decode_structured,
    encode_segment,
    photos_of,
    version_of,
)
from listen_finalization.outbox.firestore.values import encode, encode_instant
from listen_finalization.outbox.operations import refuse_unstorable
from listen_finalization.ports import Record

_TOKEN = "photo_count_token"  # noqa: S105 -- the name of a field


@dataclass(frozen=True, slots=True)
class _Append:
    """One call of `append`; `token` is how a repeat finds its own photos counted."""

    segments: tuple[Segment, ...] = field(repr=False)
    language: str
    photos: int
    byok: bool
    token: str = field(default_factory=lambda: secrets.token_hex(8))


class FirestoreConversations:
    """The conversations of one database, in `users/{uid}/conversations`."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def append(
        self,
        uid: str,
        conversation_id: str,
        segments: Sequence[Segment],
        *,
        language: str = "en",
        photos: int = 0,
        byok: bool = False,
    ) -> int:
        """Store segments in the document; see `ports.Conversations`.

        Raises `ValueRefusedError` where the document would not keep 64 KiB free. A commit of
        unknown outcome is found again by equal segments and, for photos, by a random token.
        """
        refuse_unstorable(uid, conversation_id, segments, photos)
        asked = _Append(tuple(segments), language, photos, byok)
        name = self._rpc.names.conversation(uid, conversation_id)
        return await repeated(lambda _: self._append(name, asked))

    async def _append(self, name: str, asked: _Append) -> int:
        found = await self._rpc.read((name,))
        document = found.of(name)
        if document is None:
            fields = _opened(asked, found.now)
            _refuse_large(fields, name)
            await self._rpc.commit([writes.create(name, fields)])
            return Reading(fields).required_number("content_version")
        changed = _appended(document, asked, found.now)
        if changed:
            if SEGMENTS in changed:
                _refuse_large({**document.fields, **changed}, name)
            await self._rpc.commit([writes.update(document, changed, tuple(changed))])
        return version_of(Reading({**document.fields, **changed}))

    async def find(self, uid: str, conversation_id: str) -> Record | None:
        if not nameable(uid, conversation_id):
            return None
        return await repeated(lambda _: self._find(uid, conversation_id))

    async def _find(self, uid: str, conversation_id: str) -> Record | None:
        document = await self._document(uid, conversation_id)
        if document is None:
            return None
        asked = queries.memories(conversation_id)
        memories = await self._rpc.query(asked, self._rpc.names.user(uid))
        return Record(
            decode_conversation(uid, conversation_id, document, whole=True),
            decode_structured(document),
            decode_memories(list(memories.documents.values())),
        )

    async def content(self, uid: str, conversation_id: str) -> Content | None:
        if not nameable(uid, conversation_id):
            return None
        document = await repeated(lambda _: self._document(uid, conversation_id))
        return None if document is None else decode_content(document)

    async def results(self, job_id: str) -> Mapping[tuple[Step, int], str]:
        if not nameable(job_id):
            return {}
        name = self._rpc.names.results(job_id)
        found = await repeated(lambda _: self._rpc.read((name,)))
        return _results(found, name)

    async def delete(self, uid: str, conversation_id: str) -> bool:
        """Mark the conversation deleted and drop the stored steps of its job with it."""
        if not nameable(uid, conversation_id):
            return False
        name = self._rpc.names.conversation(uid, conversation_id)
        mask = ("deleted", "finalization_job_id")
        unknown = False

        async def attempt(_: int) -> bool:
            nonlocal unknown
            document = (await self._rpc.read((name,), mask)).of(name)
            if document is None or Reading(document.fields).flag("deleted"):
                return unknown and document is not None
            try:
                await self._rpc.commit(self._deletion(document))
            except StoreUnavailableError:
                unknown = True
                raise
            return True

        return await repeated(attempt)

    def _deletion(self, document: Document) -> list[Any]:
        marked = writes.update(document, {"deleted": encode(True)}, ("deleted",))
        job_id = Reading(document.fields).text("finalization_job_id")
        if job_id is None or not nameable(job_id):
            return [marked]
        return [marked, writes.drop(self._rpc.names.results(job_id))]

    async def _document(self, uid: str, conversation_id: str) -> Document | None:
        name = self._rpc.names.conversation(uid, conversation_id)
        return (await self._rpc.read((name,))).of(name)


def _refuse_large(fields: Fields, name: str) -> None:
    if document_size(fields, name) > MAX_DOCUMENT - SPARE:
        raise ValueRefusedError


def _opened(asked: _Append, now: Instant) -> dict[str, Any]:
    """Return the fields of a new conversation."""
    segments = _merged([], asked.segments)
    fields: dict[str, Any] = {
        "status": ConversationStatus.IN_PROGRESS,
        "discarded": False,
        "deleted": False,
        "content_version": 1 if segments or asked.photos else 0,
        "has_content": _spoken(segments),
        "photo_count": asked.photos,
        "language": asked.language,
        "finalization_requires_byok": asked.byok,
        "created_at": encode_instant(now),
        SEGMENTS: segments,
    }
    if segments or asked.photos or asked.byok:
        fields["last_segment_at"] = encode_instant(now)
    if asked.photos:
        fields[_TOKEN] = asked.token
    return {name: encode(value) for name, value in fields.items()}


def _appended(document: Document, asked: _Append, now: Instant) -> dict[str, Any]:
    """Return the fields that change; none for an equal repeat or one that is already in.

    Raises `ConversationClosedError` and `RowUnreadableError`.
    """
    r = Reading(document.fields)
    if r.flag("deleted") or r.flag("discarded"):
        raise ConversationClosedError
    if r.text(_TOKEN) == asked.token:
        return {}
    held = r.values(SEGMENTS)
    merged = _merged(held, asked.segments)
    changed = merged != held
    if not changed and not asked.photos and not asked.byok:
        return {}
    fields: dict[str, Any] = {
        "content_version": version_of(r) + (1 if changed or asked.photos else 0),
        "has_content": _spoken(merged),
        "photo_count": photos_of(r) + asked.photos,
        "finalization_requires_byok": r.flag("finalization_requires_byok") or asked.byok,
        "last_segment_at": encode_instant(now),
    }
    if changed:
        fields[SEGMENTS] = merged
    if asked.photos:
        fields[_TOKEN] = asked.token
    return {name: encode(value) for name, value in fields.items()}


def _merged(held: Sequence[Any], segments: Sequence[Segment]) -> list[Any]:
    """Lay segments over the held ones by id, in their places; what is new comes behind.

    Fields of a held segment that are not ours stay.
    """
    merged = list(held)
    places = {_id_of(value, index): index for index, value in enumerate(merged)}
    for segment in segments:
        told = encode_segment(segment)
        index = places.setdefault(segment.id, len(merged))
        if index == len(merged):
            merged.append(encode(told))
        else:
            merged[index] = encode({**merged[index].map_value.fields, **told})
    return merged


def _id_of(value: Any, index: int) -> str:
    if value.WhichOneof("value_type") != "map_value":
        raise RowUnreadableError
    return Reading(value.map_value.fields).text("id") or str(index)


def _spoken(segments: Sequence[Any]) -> bool:
    read = (Reading(value.map_value.fields) for value in segments)
    return any((one.text("text") or "").strip() for one in read)


def _results(found: Found, name: str) -> Mapping[tuple[Step, int], str]:
    document = found.of(name)
    if document is None:
        return {}
    try:
        return {
            (Step(step), int(chunk)): Reading(Reading(document.fields).map(step)).text(chunk) or ""
            for step in document.fields
            for chunk in Reading(document.fields).map(step)
        }
    except ValueError as error:
        raise RowUnreadableError from error
