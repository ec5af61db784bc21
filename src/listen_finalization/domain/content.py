"""Values that hold what people said: they pass through the core unopened and are never logged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_TITLE = 120
MAX_OVERVIEW = 4_000
MAX_ITEMS = 50
MAX_ITEM_TEXT = 500
MAX_MEMORIES = 50


@dataclass(frozen=True, slots=True)
class Segment:
    """One stretch of speech. `start` and `end` are seconds from the start of the conversation."""

    id: str
    speaker: str
    start: float
    end: float
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ActionItem:
    """Something a person said would be done; `speaker` is who said it, `segment_id` where."""

    text: str = field(repr=False)
    speaker: str | None = None
    segment_id: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A meeting or date that was spoken of; `when` is the phrase as it was said."""

    title: str = field(repr=False)
    when: str | None = field(default=None, repr=False)
    segment_id: str | None = None


@dataclass(frozen=True, slots=True)
class Enrichment:
    """The finished record of a conversation. `discard` says that it is not worth keeping."""

    title: str = field(repr=False)
    overview: str = field(repr=False)
    category: str = "other"
    action_items: tuple[ActionItem, ...] = ()
    events: tuple[Event, ...] = ()
    discard: bool = False


@dataclass(frozen=True, slots=True)
class Memory:
    """A lasting fact about the person, with the ids of the segments it was taken from."""

    text: str = field(repr=False)
    segment_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Content:
    """What a run reads of a conversation, as of `content_version`."""

    segments: tuple[Segment, ...] = field(repr=False)
    content_version: int
    language: str = "en"
    photo_count: int = 0
    requires_byok: bool = False
    calendar_context: Mapping[str, Any] | None = field(default=None, repr=False)
