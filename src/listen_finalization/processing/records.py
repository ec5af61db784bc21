"""The record of a conversation: checked, bounded, and the same bytes at every retry."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from listen_finalization.domain.codes import FailureCode
from listen_finalization.domain.content import (
    MAX_ITEM_TEXT,
    MAX_ITEMS,
    MAX_MEMORIES,
    MAX_OVERVIEW,
    MAX_TITLE,
    ActionItem,
    Enrichment,
    Event,
    Memory,
)
from listen_finalization.domain.job import Job
from listen_finalization.errors import StepFailedError

MAX_RECORD_BYTES = 64 * 1024
"""Room that admission keeps free in a conversation document for the record (contract 9)."""

CATEGORIES = frozenset(
    {
        "education",
        "entertainment",
        "family",
        "finance",
        "food",
        "health",
        "legal",
        "other",
        "personal",
        "shopping",
        "social",
        "sports",
        "technology",
        "travel",
        "work",
    }
)

_dumps = json.JSONEncoder(
    separators=(",", ":"), ensure_ascii=False, sort_keys=True, allow_nan=False
).encode


def checked(value: object) -> Enrichment:
    """Return what a processor gave when it is a record.

    Raises `StepFailedError` (`processor_invalid_result`) for any other type, for text that is no
    text, and for a category outside `CATEGORIES`.
    """
    if not isinstance(value, Enrichment) or not _sound(value):
        raise StepFailedError(FailureCode.PROCESSOR_INVALID_RESULT)
    return value


def _sound(record: Enrichment) -> bool:
    texts: list[object] = [record.title, record.overview]
    items, events = tuple(record.action_items), tuple(record.events)
    if not all(isinstance(item, ActionItem) for item in items):
        return False
    if not all(isinstance(event, Event) for event in events):
        return False
    texts += [item.text for item in items] + [event.title for event in events]
    optional = [v for item in items for v in (item.speaker, item.segment_id)]
    optional += [v for event in events for v in (event.when, event.segment_id)]
    return (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(text, str | None) for text in optional)
        and isinstance(record.discard, bool)
        and record.category in CATEGORIES
    )


def checked_memories(value: object) -> tuple[Memory, ...]:
    """Return a processor's memories, at most 50, each cut to its bound. Raises as `checked`."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise StepFailedError(FailureCode.PROCESSOR_INVALID_RESULT)
    for memory in value:
        sound = isinstance(memory, Memory) and isinstance(memory.text, str)
        if not sound or not all(isinstance(s, str) for s in memory.segment_ids):
            raise StepFailedError(FailureCode.PROCESSOR_INVALID_RESULT)
    spoken = [memory for memory in value if memory.text.strip()]
    return tuple(
        Memory(_cut(m.text, MAX_ITEM_TEXT), tuple(m.segment_ids[:MAX_ITEMS]))
        for m in spoken[:MAX_MEMORIES]
    )


def _cut(text: str, limit: int) -> str:
    """Shorten text to `limit` characters and replace what UTF-8 cannot hold."""
    plain = text.encode("utf-8", "replace").decode("utf-8")
    return plain if len(plain) <= limit else plain[: limit - 1].rstrip() + "…"


def bounded(record: Enrichment) -> tuple[Enrichment, bool]:
    """Bring a record under its bounds; the flag says whether anything was lost.

    The order: every text to its own bound, then events, then action items from the last, then
    the overview, until the whole is within `MAX_RECORD_BYTES`.
    """
    short = replace(
        record,
        title=_cut(record.title, MAX_TITLE),
        overview=_cut(record.overview, MAX_OVERVIEW),
        action_items=tuple(_item(item) for item in record.action_items[:MAX_ITEMS]),
        events=tuple(_event(event) for event in record.events[:MAX_ITEMS]),
    )
    while len(encoded(short).encode()) > MAX_RECORD_BYTES:
        short = _shorter(short)
    return short, short != record


def _item(item: ActionItem) -> ActionItem:
    return ActionItem(
        _cut(item.text, MAX_ITEM_TEXT), _cut_name(item.speaker), _cut_name(item.segment_id)
    )


def _event(event: Event) -> Event:
    return Event(
        _cut(event.title, MAX_ITEM_TEXT), _cut_name(event.when), _cut_name(event.segment_id)
    )


def _cut_name(text: str | None) -> str | None:
    return None if text is None else _cut(text, MAX_TITLE)


def _shorter(record: Enrichment) -> Enrichment:
    if record.events:
        return replace(record, events=record.events[: len(record.events) // 2])
    if record.action_items:
        return replace(record, action_items=record.action_items[: len(record.action_items) // 2])
    return replace(record, overview=_cut(record.overview, len(record.overview) // 2))


def encoded(record: Enrichment) -> str:
    """Return the record as the JSON that is stored as the conversation's `structured`."""
    return _dumps(
        {
            "title": record.title,
            "overview": record.overview,
            "category": record.category,
            "action_items": [
                {"text": i.text, "speaker": i.speaker, "segment_id": i.segment_id}
                for i in record.action_items
            ],
            "events": [
                {"title": e.title, "when": e.when, "segment_id": e.segment_id}
                for e in record.events
            ],
        }
    )


def decoded(payload: str) -> Enrichment:
    """Return the record of a stored step result."""
    held: dict[str, Any] = json.loads(payload)
    return Enrichment(
        title=held["title"],
        overview=held["overview"],
        category=held["category"],
        action_items=tuple(ActionItem(**item) for item in held["action_items"]),
        events=tuple(Event(**event) for event in held["events"]),
    )


def encoded_memories(memories: Sequence[Memory]) -> str:
    return _dumps([{"text": m.text, "segment_ids": list(m.segment_ids)} for m in memories])


def webhook_body(job: Job, record: str, memories: str) -> bytes:
    """Return the body of a delivery: made of stored results alone, so a retry sends it again."""
    return _dumps(
        {
            "type": "conversation.finalized",
            "conversation_id": job.conversation_id,
            "finalization_revision": job.finalization_revision,
            "structured": json.loads(record),
            "memories": json.loads(memories),
        }
    ).encode()
