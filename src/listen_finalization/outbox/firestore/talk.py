"""Conversation documents, ours and the application's own, as values of the domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from listen_finalization.domain.codes import ConversationStatus
from listen_finalization.domain.content import Content, Memory, Segment
from listen_finalization.domain.conversation import Conversation
from listen_finalization.errors import RowUnreadableError
from listen_finalization.outbox.firestore.fields import Fields, Reading
from listen_finalization.outbox.firestore.rpc import Document
from listen_finalization.outbox.firestore.size import MAX_DOCUMENT, document_size
from listen_finalization.outbox.firestore.values import decode, encode, encode_instant, texts

SEGMENTS = "transcript_segments"
CONTEXT = ("external_data", "calendar_meeting_context")
STRUCTURED = "structured"
_DECIDED = {
    "status": "status",
    "discarded": "discarded",
    "requires_byok": "finalization_requires_byok",
    "job_id": "finalization_job_id",
    "revision": "finalization_revision",
    "wanted_version": "finalization_wanted_version",
    "admitted_at": "finalization_admitted_at",
}
DECIDING = (*_DECIDED.values(), "deleted", "content_version", "has_content", "photo_count")
"""The fields that a decision reads: everything but what was said."""

ROOM = 256
"""Bytes that an admission adds to a document at most (221 of seven fields), the context apart.

Every field that a dead letter needs is written then, with the longest word that it will hold.
"""

_KNOWN = frozenset(ConversationStatus)


def says_content(document: Document) -> bool:
    """Whether the deciding fields show content; else only the whole document tells.

    The application's own documents lack these fields, and an empty one is worth a second look.
    """
    r = Reading(document.fields)
    return r.flag("has_content") or bool(r.number("photo_count"))


def decode_conversation(
    uid: str, conversation_id: str, document: Document, *, whole: bool, incoming: int = 0
) -> Conversation:
    """Build the decisive fields of a conversation.

    `whole` says that the document was read with its content: content and room are then measured,
    with `incoming` bytes of a context on top. Raises `RowUnreadableError` for a field of a wrong
    type.
    """
    r = Reading(document.fields)
    status = r.text("status")
    room = not whole or (
        document_size(document.fields, document.name) + ROOM + incoming <= MAX_DOCUMENT
    )
    return Conversation(
        uid=uid,
        conversation_id=conversation_id,
        status=ConversationStatus(status) if status in _KNOWN else ConversationStatus.OTHER,
        content_version=version_of(r),
        has_content=_spoken(r),
        has_room=room,
        deleted=r.flag("deleted"),
        discarded=r.flag("discarded"),
        requires_byok=r.flag("finalization_requires_byok"),
        job_id=r.text("finalization_job_id"),
        revision=r.number("finalization_revision"),
        wanted_version=r.number("finalization_wanted_version"),
        admitted_at=r.instant("finalization_admitted_at"),
    )


def version_of(reading: Reading) -> int:
    """Return the content version; a document of the application's own is at its first."""
    held = reading.number("content_version")
    return 1 if held is None else held


def _spoken(r: Reading) -> bool:
    return r.flag("has_content") or bool(photos_of(r)) or has_words(r)


def has_words(reading: Reading) -> bool:
    """Whether a stored segment holds words."""
    return any((one.text("text") or "").strip() for one in reading.maps(SEGMENTS))


def photos_of(reading: Reading) -> int:
    """Return how many photos there are, by our count or the application's own list."""
    counted = reading.number("photo_count")
    return len(reading.values("photos")) if counted is None else counted


def changes(before: Conversation, after: Conversation, stored_fields: Fields) -> dict[str, Any]:
    """Return the stored form of the fields that a decision changed; None where one goes.

    A field that is not there is written as well, though its absence meant the same: a dead letter
    must find its room taken.
    """
    found: dict[str, Any] = {}
    for attribute, name in _DECIDED.items():
        value = getattr(after, attribute)
        there = name in stored_fields or value is None
        if getattr(before, attribute) == value and there:
            continue
        stored = encode_instant if attribute == "admitted_at" else encode
        found[name] = None if value is None else stored(value)
    return found


def decode_content(document: Document) -> Content:
    """Return what a run reads. Raises `RowUnreadableError`."""
    r = Reading(document.fields)
    held = enumerate(r.maps(SEGMENTS))
    segments = sorted((_segment(one, index) for index, one in held), key=lambda s: s.start)
    return Content(
        tuple(segments),
        version_of(r),
        r.text("language") or "en",
        photos_of(r),
        r.flag("finalization_requires_byok"),
        _context(r),
    )


def _segment(r: Reading, index: int) -> Segment:
    """Return a segment; one of the application's own without an id is named by its place."""
    return Segment(
        r.text("id") or str(index),
        r.text("speaker") or "",
        r.seconds("start"),
        r.seconds("end"),
        r.text("text") or "",
    )


def _context(r: Reading) -> Mapping[str, Any] | None:
    parent, name = CONTEXT
    held = r.map(parent)
    return decode(held[name]) if name in held else None


def decode_structured(document: Document) -> Any:
    """Return the published record; None where there is none."""
    if STRUCTURED not in document.fields:
        return None
    held = decode(document.fields[STRUCTURED])
    if held is not None and not isinstance(held, dict):
        raise RowUnreadableError
    return held


def encode_segment(segment: Segment) -> dict[str, Any]:
    return {
        "id": encode(segment.id),
        "speaker": encode(segment.speaker),
        "start": encode(float(segment.start)),
        "end": encode(float(segment.end)),
        "text": encode(segment.text),
    }


def decode_memories(documents: Sequence[Document]) -> tuple[Memory, ...]:
    """Return the memories of a conversation by age; one without a text is not one of ours."""
    read = [(d, Reading(d.fields)) for d in documents if _ours(d)]
    read.sort(key=lambda pair: (pair[1].instant("created_at") or 0, pair[0].name))
    return tuple(Memory(r.text("text") or "", texts(r.values("segment_ids"))) for _, r in read)


def _ours(document: Document) -> bool:
    fields = document.fields
    return "text" in fields and fields["text"].WhichOneof("value_type") == "string_value"
