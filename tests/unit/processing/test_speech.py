"""Reading speech: cleaning, tasks, dates, and how a sentence is told."""

from __future__ import annotations

import pytest

from listen_finalization.domain.content import Content, Segment
from listen_finalization.processing.speech.actions import action_items_of
from listen_finalization.processing.speech.cleaning import clean, normalise
from listen_finalization.processing.speech.dates import events_of, spoken_date
from listen_finalization.processing.speech.languages import language_of
from listen_finalization.processing.speech.narration import told
from listen_finalization.processing.speech.sentences import Sentence, sentences_of, stemmer_of

ENGLISH = language_of("en")


def sentences(*texts: str, speaker: str = "Ana") -> list[Sentence]:
    segments = tuple(
        Segment(f"s{index}", speaker, 0.0, 1.0, text) for index, text in enumerate(texts, 1)
    )
    return sentences_of(Content(segments, 1), ENGLISH, stem=stemmer_of(ENGLISH))


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("So, we are asked to to make uh uh a new remote.", "We are asked to make a new remote."),
        ("Yeah, yeah, I I I think it's it's fine", "I think it's fine."),
        ("and we designed, uh, new filters, um", "We designed new filters."),
        ("w w we th the sub subtraction works", "We the subtraction works."),
        ("we took first we took the filters.", "We took the filters."),
        ("I mean, you know, the cost is fine, right?", "The cost is fine?"),
        ("the code is one five five two", "The code is one five five two."),
        ("well done, everybody", "Well done, everybody."),
        ("um. uh-huh.", ""),
        ("i think i'm late", "I think I'm late."),
    ],
)
def test_fillers_stutters_and_empty_openings_are_dropped(said: str, written: str) -> None:
    assert clean(said, ENGLISH).text == written


def test_sentence_that_broke_off_is_not_whole() -> None:
    assert clean("The price is fine.", ENGLISH).whole
    assert not clean("The price is", ENGLISH).whole


def test_tokenised_transcripts_are_joined_again() -> None:
    raw = "it 's a low - pass filter , in - in the box"
    assert normalise(raw, tokenised=True) == "it's a low-pass filter , in in the box"
    assert normalise("a T_V_ and X_M_L_", tokenised=False) == "a TV and XML"


def test_fragments_of_one_speaker_are_joined_over_a_short_reply() -> None:
    segments = (
        Segment("a", "Ana", 0.0, 1.0, "We should change"),
        Segment("b", "Ben", 1.0, 2.0, "Yeah."),
        Segment("c", "Ana", 2.0, 3.0, "the colour of the cover."),
    )
    found = sentences_of(Content(segments, 1), ENGLISH, stem=stemmer_of(ENGLISH))
    assert ("We should change the colour of the cover.", ("a", "c")) in [
        (one.text, one.segment_ids) for one in found
    ]


def test_stretch_without_punctuation_is_cut_and_keeps_its_segments() -> None:
    found = sentences(*["we send the report and they read it"] * 40)
    assert max(len(one.words) for one in found) <= 45
    assert found[-1].segment_ids[-1] == "s40"


@pytest.mark.parametrize(
    ("said", "task"),
    [
        ("Well, um, I'll send the report to the client.", "I'll send the report to the client."),
        ("I think we need to contact the supplier.", "We need to contact the supplier."),
        ("Tom, can you update the budget sheet?", "Can you update the budget sheet?"),
        ("Please book a room for the workshop.", "Please book a room for the workshop."),
        ("Don't forget to submit the tax form.", "Don't forget to submit the tax form."),
        (
            "I will call the bank tomorrow, but they never answer.",
            "I will call the bank tomorrow.",
        ),
    ],
)
def test_commitments_and_requests_become_tasks(said: str, task: str) -> None:
    assert [item.text for item in action_items_of(sentences(said), ENGLISH)] == [task]


@pytest.mark.parametrize(
    "said",
    [
        "I'll say the price is fine.",
        "We will see how the market reacts.",
        "If we need to send the report, it costs money.",
        "What should we write in the report?",
        "You have to press the button on the remote.",
        "Let's look at the next slide.",
        "Can you go to the next slide?",
        "I should have sent the report.",
        "We don't need to send the report.",
        "I will send",
    ],
)
def test_talk_is_no_task(said: str) -> None:
    assert action_items_of(sentences("It is fine.", said), ENGLISH) == ()


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("The demo is on Friday at 3 pm.", "on Friday at 3 pm"),
        ("See you tomorrow morning.", "tomorrow morning"),
        (
            "The next appointment is on Tuesday the 14th of May at 9:30.",
            "on Tuesday the 14th of May at 9:30",
        ),
        ("We ship it by the end of the month.", "by the end of the month"),
        ("It starts at nine o'clock.", "at nine o'clock"),
        ("Let's meet in two weeks.", "in two weeks"),
        ("The design is fine, maybe we may march on.", None),
    ],
)
def test_date_is_found_as_it_was_said(text: str, when: str | None) -> None:
    assert spoken_date(text) == when


def test_event_needs_an_occasion_and_a_future() -> None:
    said = ("The meeting was on Monday.", "I like Fridays very much.", "The exam is on Monday.")
    assert [event.title for event in events_of(sentences(*said), ENGLISH)] == [
        "The exam is on Monday."
    ]


@pytest.mark.parametrize(
    ("said", "account"),
    [
        ("The price is twenty euros.", "Ana said that the price is twenty euros."),
        ("I think that the price is fine.", "Ana thought that the price is fine."),
        ("Maybe we could sell it.", "Ana suggested that maybe we could sell it."),
        ("I am allergic to nuts.", 'Ana said: "I am allergic to nuts."'),
        ("Where is the report?", 'Ana asked: "Where is the report?"'),
        ("Send the report to Tom.", 'Ana said: "Send the report to Tom."'),
    ],
)
def test_statement_is_reported_and_speech_about_oneself_stays_direct(
    said: str, account: str
) -> None:
    (sentence,) = sentences(said)
    assert told(sentence, ENGLISH) == account


def test_other_languages_are_told_with_a_colon() -> None:
    (sentence,) = sentences("Der Preis ist gut.")
    assert told(sentence, language_of("de-AT")) == "Ana: Der Preis ist gut."
