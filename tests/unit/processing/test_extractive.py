"""The record that is written without a model: what it holds, its bounds, and any input."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from listen_finalization.cli.transcripts import read_transcript
from listen_finalization.domain.content import (
    MAX_ITEM_TEXT,
    MAX_ITEMS,
    MAX_MEMORIES,
    MAX_OVERVIEW,
    MAX_TITLE,
    Content,
    Enrichment,
    Memory,
    Segment,
)
from listen_finalization.processing.extractive import ExtractiveProcessor
from listen_finalization.processing.protocol import Processor, Request

PROJECT = Path(__file__).parents[3]
EXAMPLES = PROJECT / "examples"
MEETINGS = PROJECT.parent / "shared" / "data" / "meetings"


def request_of(
    *said: tuple[str, str], language: str = "en", force: bool = False, calendar: str | None = None
) -> Request:
    segments = tuple(
        Segment(f"s{index:06d}", speaker, float(index), index + 1.0, text)
        for index, (speaker, text) in enumerate(said, 1)
    )
    context = None if calendar is None else {"title": calendar}
    content = Content(segments, 1, language=language, calendar_context=context)
    return Request(content, force, 60.0)


def request_from(path: Path) -> Request:
    transcript = read_transcript(path)
    return Request(Content(transcript.segments, 1, language=transcript.language), False, 60.0)


def record_of(request: Request) -> tuple[Enrichment, list[Memory]]:
    processor: Processor = ExtractiveProcessor()
    enrichment = processor.enrich(request)
    assert enrichment is not None
    return enrichment, list(processor.memories(request, enrichment))


def assert_within_bounds(request: Request, enrichment: Enrichment, memories: list[Memory]) -> None:
    ids = {segment.id for segment in request.content.segments}
    assert 0 < len(enrichment.title) <= MAX_TITLE
    assert len(enrichment.overview) <= MAX_OVERVIEW
    assert len(enrichment.action_items) <= MAX_ITEMS and len(enrichment.events) <= MAX_ITEMS
    assert all(len(item.text) <= MAX_ITEM_TEXT for item in enrichment.action_items)
    assert len(memories) <= MAX_MEMORIES
    assert all(memory.segment_ids and ids.issuperset(memory.segment_ids) for memory in memories)
    assert {item.segment_id for item in enrichment.action_items} <= ids
    assert {event.segment_id for event in enrichment.events} <= ids
    texts = [enrichment.title, enrichment.overview, *(memory.text for memory in memories)]
    assert all(
        "\x00" not in text and text.encode("utf-8").decode("utf-8") == text for text in texts
    )


STANDUP = (
    ("Maya", "Um, the the goal for this week is to ship the new payment page to all customers."),
    ("Tom", "Okay, so I will write the error messages for the payment page by tomorrow evening."),
    ("Priya", "Mm-hmm."),
    ("Priya", "I tested the payment page, and three of forty test payments failed with a timeout."),
    ("Maya", "So we decided to raise the timeout of the payment page to fifteen seconds."),
    ("Maya", "The release meeting is on Thursday at 10 am."),
)


def test_title_names_the_topic() -> None:
    enrichment, _ = record_of(request_of(*STANDUP))
    assert enrichment.title.startswith("Payment page")


def test_calendar_title_leads_the_title() -> None:
    enrichment, _ = record_of(request_of(*STANDUP, calendar="Weekly\nstand-up\x00"))
    assert enrichment.title.startswith("Weekly stand-up: payment page")


def test_overview_names_the_speakers_and_leaves_out_fillers_and_stutters() -> None:
    enrichment, _ = record_of(request_of(*STANDUP))
    assert "Maya said that the goal for this week is to ship the new payment page" in (
        enrichment.overview
    )
    assert not {"um", "um,", "mm-hmm."} & set(enrichment.overview.lower().split())


def test_monologue_is_not_attributed_sentence_by_sentence() -> None:
    enrichment, _ = record_of(request_of(*(("Maya", text) for _, text in STANDUP)))
    assert "Maya said" not in enrichment.overview


def test_commitment_becomes_an_action_item_with_speaker_and_segment() -> None:
    enrichment, _ = record_of(request_of(*STANDUP))
    (item,) = enrichment.action_items
    assert item.text == (
        "I will write the error messages for the payment page by tomorrow evening."
    )
    assert (item.speaker, item.segment_id) == ("Tom", "s000002")


def test_date_that_was_spoken_of_becomes_an_event() -> None:
    enrichment, _ = record_of(request_of(*STANDUP))
    (event,) = enrichment.events
    assert (event.when, event.segment_id) == ("on Thursday at 10 am", "s000006")


def test_decision_is_remembered_with_its_segment() -> None:
    _, memories = record_of(request_of(*STANDUP))
    remembered = {memory.segment_ids: memory.text for memory in memories}
    assert remembered[("s000005",)].startswith("Maya said that we decided to raise the timeout")


def test_sentence_over_several_segments_names_them_all() -> None:
    said = (("Ana", "I am allergic to penicillin"), ("Ben", "Mm-hmm."), ("Ana", "and to nuts."))
    _, memories = record_of(request_of(*said, *STANDUP))
    assert ("s000001", "s000003") in [memory.segment_ids for memory in memories]


def test_no_sentence_is_told_twice() -> None:
    enrichment, memories = record_of(request_of(*STANDUP * 5))
    assert enrichment.overview.count("fifteen seconds") <= 1
    assert len({memory.text for memory in memories}) == len(memories)


def test_conversation_without_words_has_no_record() -> None:
    processor = ExtractiveProcessor()
    assert processor.enrich(request_of()) is None
    assert processor.enrich(request_of(("A", " "), ("B", "... !"), ("A", "\x00"))) is None


def test_backchannels_alone_are_discarded_unless_forced() -> None:
    said = (("A", "Yeah, right, I know."), ("B", "Okay. It is what it is."))
    enrichment, memories = record_of(request_of(*said))
    assert enrichment.discard and memories == []
    forced, kept = record_of(request_of(*said, force=True))
    assert not forced.discard and kept


@pytest.mark.parametrize(
    ("text", "category"),
    [
        (
            "The doctor measured my blood pressure and changed the medication for my headaches.",
            "health",
        ),
        (
            "We bought groceries, and then my mother took the kids and the dog to the garden.",
            "personal",
        ),
        ("The bank wants the mortgage papers and the tax forms for the loan.", "finance"),
        ("The professor moved the homework and the exam of the class to June.", "education"),
        ("Purple elephants yodel beneath marble staircases.", "other"),
    ],
)
def test_category_follows_the_keywords(text: str, category: str) -> None:
    enrichment, _ = record_of(request_of(("A", text)))
    assert enrichment.category == category


@pytest.mark.parametrize(
    ("language", "text", "topic"),
    [
        ("de", "Die Lieferung der Fenster kommt am Montag. Die Fenster sind zu teuer.", "Fenster"),
        (
            "es",
            "El presupuesto del proyecto es pequeño. El presupuesto sube en mayo.",
            "Presupuesto",
        ),
        ("zh", "今天天气很好。我们去公园散步吧!公园里有很多花。", ""),
        ("ar", "سنرسل التقرير إلى العميل يوم الخميس. التقرير طويل جدا.", ""),
        ("xx-unknown", "Blorgo fenta mirapol. Mirapol santeru blorgo!", ""),
    ],
)
def test_other_languages_get_title_overview_and_memories(
    language: str, text: str, topic: str
) -> None:
    request = request_of(("Ana", text), ("Ben", "OK."), ("Ben", text[::-1]), language=language)
    enrichment, memories = record_of(request)
    assert_within_bounds(request, enrichment, memories)
    assert topic in enrichment.title
    assert enrichment.overview and memories


@pytest.mark.parametrize("name", ["standup.vtt", "doctor-visit.json"])
def test_examples_give_a_full_record(name: str) -> None:
    request = request_from(EXAMPLES / name)
    enrichment, memories = record_of(request)
    assert_within_bounds(request, enrichment, memories)
    assert len(enrichment.action_items) >= 4 and enrichment.events and len(memories) >= 3
    assert not enrichment.discard


def test_each_real_meeting_gives_title_overview_and_a_memory() -> None:
    paths = sorted(MEETINGS.glob("*.json"))
    if not paths:
        pytest.skip("the shared meetings are not here")
    for path in paths:
        request = request_from(path)
        enrichment, memories = record_of(request)
        assert_within_bounds(request, enrichment, memories)
        assert ":" in enrichment.title and len(enrichment.overview.split()) > 60
        assert memories and not enrichment.discard
        assert enrichment.category in {"work", "technology", "education"}


_CHARACTERS = st.characters() | st.sampled_from("\x00\u202e\u200d\ud800 .?!'-_\"\n")
_TEXTS = st.text(_CHARACTERS, max_size=80) | st.sampled_from([text for _, text in STANDUP])
_SPEAKERS = st.sampled_from(["A", "", "Project Manager", "\x00", "\ud800", "x" * 500])


@settings(deadline=None, max_examples=150)
@given(
    said=st.lists(st.tuples(_SPEAKERS, _TEXTS), max_size=20),
    language=st.sampled_from(["en", "en-GB", "de", "zh", "", "xx", "\x00"]),
    force=st.booleans(),
)
def test_any_text_stays_within_bounds_and_gives_the_same_again(
    said: list[tuple[str, str]], language: str, force: bool
) -> None:
    request = request_of(*said, language=language, force=force)
    enrichment = ExtractiveProcessor().enrich(request)
    assert enrichment == ExtractiveProcessor().enrich(request)
    if enrichment is not None:
        memories = list(ExtractiveProcessor().memories(request, enrichment))
        assert_within_bounds(request, enrichment, memories)
        assert memories == list(ExtractiveProcessor().memories(request, enrichment))


def _hostile() -> Iterable[tuple[str, Request]]:
    million = 1_000_000
    yield "no punctuation", request_of(("A", "we need to send the report then " * (million // 32)))
    yield "one word", request_of(("A", "a" * million))
    yield "dashes", request_of(("A", "-" * million + " hello"))
    yield "underscores", request_of(("A", "a_" * (million // 2)))
    yield "hyphens", request_of(("A", "a - " * (million // 4) + "it 's"))
    yield "clock", request_of(("A", "12:30 at " * (million // 9)))
    yield "no spaces", request_of(("A", "今天天气很好" * (million // 6)))
    yield "tiny", request_of(*(("AB"[i % 2], "We should send it.") for i in range(50_000)))
    yield "fragments", request_of(*(("A", f"a. b{i}") for i in range(50_000)))


@pytest.mark.parametrize(
    ("name", "request_"),
    list(_hostile()),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_input_costs_no_more_than_its_length(name: str, request_: Request) -> None:
    begin = time.process_time()
    enrichment = ExtractiveProcessor().enrich(request_)
    assert time.process_time() - begin < 30
    assert enrichment is None or len(enrichment.overview) <= MAX_OVERVIEW
