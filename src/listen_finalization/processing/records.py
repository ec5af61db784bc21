"""The record of a conversation: checked, bounded, and the same bytes at every retry."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from types import UnionType
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
    return replace(value, action_items=tuple(value.action_items), events=tuple(value.events))


def _sound(record: Enrichment) -> bool:
    items, events = record.action_items, record.events
    return (
        _all(items, ActionItem)
        and _all(events, Event)
        and _all([record.title, record.overview, record.category], str)
        and _all([item.text for item in items], str)
        and _all([event.title for event in events], str)
        and _all([v for item in items for v in (item.speaker, item.segment_id)], str | None)
        and _all([v for event in events for v in (event.when, event.segment_id)], str | None)
        and isinstance(record.discard, bool)
        and record.category in CATEGORIES
    )


def _all(values: object, kind: type | UnionType) -> bool:
    """Whether the values are a list or tuple of one kind; what a type checker said may not hold."""
    return isinstance(values, list | tuple) and all(isinstance(one, kind) for one in values)


def checked_memories(value: object) -> tuple[Memory, ...]:
    """Return a processor's memories, at most 50, each cut to its bound. Raises as `checked`."""
    if not isinstance(value, list | tuple) or not all(map(_sound_memory, value)):
        raise StepFailedError(FailureCode.PROCESSOR_INVALID_RESULT)
    spoken = [memory for memory in value if memory.text.strip()]
    return tuple(
        Memory(
            _cut(memory.text, MAX_ITEM_TEXT),
            tuple(_cut(name, MAX_TITLE) for name in memory.segment_ids[:MAX_ITEMS]),
        )
        for memory in spoken[:MAX_MEMORIES]
    )


def _sound_memory(value: object) -> bool:
    return (
        isinstance(value, Memory) and isinstance(value.text, str) and _all(value.segment_ids, str)
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
    """Return the record of a stored step result.

    Raises `StepFailedError` (`content_unreadable`) where it is damaged.
    """
    try:
        held: dict[str, Any] = json.loads(payload)
        return Enrichment(
            title=held["title"],
            overview=held["overview"],
            category=held["category"],
            action_items=tuple(ActionItem(**item) for item in held["action_items"]),
            events=tuple(Event(**event) for event in held["events"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StepFailedError(FailureCode.CONTENT_UNREADABLE) from error


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
