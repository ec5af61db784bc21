"""Dates and times as they are spoken in English, and the events that they belong to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from listen_finalization.domain.content import MAX_ITEM_TEXT, MAX_ITEMS, Event
from listen_finalization.processing.speech.english import MONTHS, OCCASIONS, POINTERS
from listen_finalization.processing.speech.languages import Language
from listen_finalization.processing.speech.ranking import readable
from listen_finalization.processing.speech.sentences import Sentence

_NUMBER = r"(?:\d{1,2}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_PART = r"(?: (?:morning|afternoon|evening|night))?"
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_CLOCK = (
    r"(?:at )?\d{1,2}(?::\d\d)? ?(?:am|pm|a\.m\.|p\.m\.)|(?:at )?\d{1,2}:\d\d|"
    rf"(?:at )?{_NUMBER}(?: thirty| fifteen)? o'clock|at (?:half past |quarter (?:past|"
    rf"to) )?{_NUMBER}"
    r"(?: thirty| fifteen| forty-five)?(?= (?:in the|on|tomorrow|sharp|next|pm|am)\b|[.,?!]|"
    r"$)(?: (?:pm|am))?(?: in the (?:morning|afternoon|evening))?|at noon"
)
_DATE = (
    rf"(?:(?:on|by|until|till|before|from|next|this|every) )*{_DAY}{_PART}|(?:(?:by|until|before|"
    rf"from) )?(?:the day after )?tomorrow{_PART}|tonight|"
    r"(?:this|next) (?:morning|afternoon|evening)|(?:(?:by|for|in|at|until|"
    r"before) )?(?:the )?next (?:week|month|year|quarter|sprint|meeting|session|semester|summer|"
    r"spring|autumn|winter|visit|appointment)(?:'s \w+)?|"
    rf"(?:in|within) (?:the next |about )?{_NUMBER} (?:hour|day|week|month|year)s?(?:' time)?|"
    r"(?:by |at |before )?the end of (?:the |this |next )?(?:day|week|month|year|quarter|sprint)|"
    rf"(?:(?:on|by|until|before) )?(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{MONTHS})\b|"
    rf"(?:(?:on|by|until|before) )?(?:{MONTHS}) (?:the )?\d{{1,2}}(?:st|nd|rd|th)?\b|"
    r"(?:(?:on|by|until) )?the (?:\d{1,2}(?:st|nd|rd|th)|(?:twenty |thirty |twenty-|"
    r"thirty-)?(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|\w+teenth|"
    r"twelfth|twentieth)"
    rf" of (?:{MONTHS}))"
)
_WHEN = re.compile(
    rf"\b(?:{_DATE}|{_CLOCK})(?:,? (?:at |on |or )?(?:{_DATE}|{_CLOCK})){{0,2}}", re.I
)
_DEFINITE = re.compile(rf"\d|{_DAY}|tomorrow|o'clock|\b(?:{MONTHS})\b", re.IGNORECASE)
_OVER = re.compile(r"\b(?:last|yesterday|ago|was|were|had|did|used to)\b", re.IGNORECASE)
_LONGEST = 25
_CLEAR = 0.5


def spoken_date(text: str) -> str | None:
    """Return the most definite date or time of day of an English text as it was said."""
    found = [match[0].strip() for match in _WHEN.finditer(text)]
    return max(found, key=lambda when: (bool(_DEFINITE.search(when)), len(when)), default=None)


def events_of(sentences: Iterable[Sentence], language: Language) -> tuple[Event, ...]:
    """Return the coming events that were spoken of, each date once; none but in English."""
    if not language.english:
        return ()
    events: dict[str, Event] = {}
    for event in _spoken_events(sentences, language):
        events.setdefault((event.when or "").lower(), event)
    return tuple(events.values())[:MAX_ITEMS]


def _spoken_events(sentences: Iterable[Sentence], language: Language) -> Iterator[Event]:
    for sentence in sentences:
        if len(sentence.words) > _LONGEST or OCCASIONS.isdisjoint(sentence.words):
            continue
        when = spoken_date(sentence.text)
        coming = when and len(sentence.words) > 3 and not _OVER.search(sentence.text)
        coming = coming and sentence.words[0] not in POINTERS
        if coming and readable(sentence, language) >= _CLEAR:
            yield Event(sentence.text[:MAX_ITEM_TEXT], when, sentence.segment_id)
