"""Records: what a processor gave is checked, bounded, and the same bytes at every retry."""

from __future__ import annotations

import json
from typing import Any

import pytest

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
from listen_finalization.errors import StepFailedError
from listen_finalization.processing.records import (
    MAX_RECORD_BYTES,
    bounded,
    checked,
    checked_memories,
    decoded,
    encoded,
    encoded_memories,
)
from listen_finalization.testing.processor import oversized

GOOD = Enrichment(
    "Title", "Overview", "work", (ActionItem("Ship it", "Ada", "s1"),), (Event("Call", "Friday"),)
)
ODD: Any = object()


def refused(call: Any, value: object) -> None:
    with pytest.raises(StepFailedError) as caught:
        call(value)
    assert caught.value.code is FailureCode.PROCESSOR_INVALID_RESULT


@pytest.mark.parametrize(
    "value",
    [
        None,
        ODD,
        "text",
        b"bytes",
        {"title": "x"},
        [GOOD],
        Enrichment(ODD, "o"),
        Enrichment("t", ODD),
        Enrichment(None, "o"),  # type: ignore[arg-type]
        Enrichment("t", "o", "no-such-category"),
        Enrichment("t", "o", ["work"]),  # type: ignore[arg-type]
        Enrichment("t", "o", None),  # type: ignore[arg-type]
        Enrichment("t", "o", "work", None),  # type: ignore[arg-type]
        Enrichment("t", "o", "work", "text"),  # type: ignore[arg-type]
        Enrichment("t", "o", "work", iter(())),  # type: ignore[arg-type]
        Enrichment("t", "o", "work", ("text",)),  # type: ignore[arg-type]
        Enrichment("t", "o", "work", (ActionItem(ODD),)),
        Enrichment("t", "o", "work", (ActionItem("a", ODD),)),
        Enrichment("t", "o", "work", (), (Event(ODD),)),
        Enrichment("t", "o", "work", (), (Event("e", 5),)),  # type: ignore[arg-type]
        Enrichment("t", "o", discard=1),  # type: ignore[arg-type]
        Enrichment("t", "o", discard="no"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_record_is_refused_with_its_own_code(value: object) -> None:
    refused(checked, value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        ODD,
        "text",
        b"bytes",
        {},
        iter(()),
        ["text"],
        [None],
        [Memory(ODD)],
        [Memory("m", None)],  # type: ignore[arg-type]
        [Memory("m", "s1")],  # type: ignore[arg-type]
        [Memory("m", (5,))],  # type: ignore[arg-type]
    ],
)
def test_what_is_no_list_of_memories_is_refused(value: object) -> None:
    refused(checked_memories, value)


def test_a_sound_record_is_taken_whole_and_told_as_whole() -> None:
    assert bounded(checked(GOOD)) == (GOOD, False)


def test_lists_are_as_good_as_tuples_and_lose_nothing() -> None:
    listed = Enrichment("Title", "Overview", "work", list(GOOD.action_items), list(GOOD.events))  # type: ignore[arg-type]
    assert bounded(checked(listed)) == (GOOD, False)


def test_an_empty_structure_is_a_record() -> None:
    empty = Enrichment("", "")
    assert bounded(checked(empty)) == (empty, False)


def test_a_record_comes_back_from_its_stored_form() -> None:
    assert decoded(encoded(GOOD)) == GOOD
    assert encoded(decoded(encoded(GOOD))) == encoded(GOOD)


@pytest.mark.parametrize("damaged", ["", "{", "[]", "{}", '{"title": 1}', "null"])
def test_a_damaged_stored_record_is_this_jobs_own_trouble(damaged: str) -> None:
    with pytest.raises(StepFailedError) as caught:
        decoded(damaged)
    assert caught.value.code is FailureCode.CONTENT_UNREADABLE


def test_an_oversized_record_is_shortened_to_its_bounds_and_says_so() -> None:
    short, lost = bounded(checked(oversized(ODD)))
    assert lost
    assert len(short.title) <= MAX_TITLE
    assert len(short.overview) <= MAX_OVERVIEW
    assert len(short.action_items) <= MAX_ITEMS
    assert all(len(item.text) <= MAX_ITEM_TEXT for item in short.action_items)
    assert len(encoded(short).encode()) <= MAX_RECORD_BYTES


def test_events_go_first_then_action_items_and_the_title_stays() -> None:
    wide = "\U0001f600" * 500
    items = tuple(ActionItem(wide, wide, wide) for _ in range(50))
    events = tuple(Event(wide, wide, wide) for _ in range(50))
    short, lost = bounded(Enrichment("Title", wide * 8, "work", items, events))
    assert lost and short.events == () and 0 < len(short.action_items) < 50
    assert (short.title, len(short.overview)) == ("Title", MAX_OVERVIEW)


@pytest.mark.parametrize("worst", ["\x00", "\\", '"', "\U0001f600", "\ud800", "\x7f", "\n"])
def test_no_text_can_keep_a_record_from_being_stored(worst: str) -> None:
    items = tuple(ActionItem(worst * 600, worst * 600, worst * 600) for _ in range(60))
    events = tuple(Event(worst * 600, worst * 600, worst * 600) for _ in range(60))
    short, _ = bounded(Enrichment(worst * 600, worst * 9_000, "other", items, events))
    stored = encoded(short).encode()
    assert len(stored) <= MAX_RECORD_BYTES
    assert decoded(stored.decode()) == short


def test_memories_are_bounded_in_number_text_and_sources() -> None:
    many = [Memory("m" * 900, ("s" * 900, "\ud800") * 100) for _ in range(80)]
    held = checked_memories([Memory("  "), *many])
    assert len(held) == MAX_MEMORIES
    assert all(len(m.text) <= MAX_ITEM_TEXT and len(m.segment_ids) == MAX_ITEMS for m in held)
    assert all(len(s) <= MAX_TITLE for m in held for s in m.segment_ids)
    json.loads(encoded_memories(held).encode("utf-8"))


def test_the_stored_form_does_not_depend_on_the_order_of_anything_unordered() -> None:
    assert encoded(GOOD) == encoded(decoded(encoded(GOOD)))
    assert list(json.loads(encoded(GOOD))) == sorted(json.loads(encoded(GOOD)))
