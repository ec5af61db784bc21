"""Lasting facts: decisions, preferences, plans and what people told of themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence

from listen_finalization.domain.content import MAX_MEMORIES, Memory
from listen_finalization.processing.speech.english import POINTERS
from listen_finalization.processing.speech.languages import Language
from listen_finalization.processing.speech.narration import told
from listen_finalization.processing.speech.ranking import alike, readable, select
from listen_finalization.processing.speech.sentences import Sentence

_DECISION = re.compile(
    r"\b(?:decided|agreed|settled on|chose|concluded|it was decided|decision is|going (?:for|"
    r"with)|we(?:'ll| will| are going to|'re going to| can't| won't) (?:use|have|go|keep|not|"
    r"need|only|make|sell|buy|move|start|stop)|has to be|must be|no longer|from now on|postponed|"
    r"cancelled|canceled|approved|moved to)\b",
    re.IGNORECASE,
)
_PERSON = re.compile(
    r"\b(?:my (?:wife|husband|partner|mother|father|mom|mum|dad|son|daughter|brother|sister|boss|"
    r"job|name|birthday|doctor|dog|cat|house|family|parents|thesis|qualifying|favou?rite)|I(?:'m|"
    r" am) (?:allergic|from|vegetarian|vegan|married|a \w+|an \w+|responsible|living|working)|"
    r"I(?: \w+)? (?:live|work|grew up|was born|moved|study|studied|take|smoke|exercise)\b|"
    r"years old|I've (?:been|had|worked|lived)|I(?: used to)? have (?:type|been|diabetes|asthma|"
    r"\w+ (?:kids|children|sons?|daughters?|brothers?|sisters?)))\b",
    re.IGNORECASE,
)
_PREFERENCE = re.compile(
    r"\bI (?:really |also |personally |actually )*(?:like|love|prefer|hate|enjoy|dislike|"
    r"don't like|can't stand|would rather|don't want)\b|\b(?:people|users|customers) (?:like|"
    r"want|prefer|hate|find)\b",
    re.IGNORECASE,
)
_PLAN = re.compile(
    r"\b(?:I'm|we're|I am|we are|he's|she's|they're) (?:planning|hoping|trying|aiming|working|"
    r"supposed|going) (?:to|on|for)\b|\b(?:the plan|the goal|the target|the aim|the deadline|"
    r"the budget|our \w+ is)\b|\bwe want to\b",
    re.IGNORECASE,
)
_MEASURE = re.compile(
    r"(?:\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|"
    r"forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|"
    r"half))[ -]?(?:\w+[ -])?(?:percent|%|euros?|dollars?|pounds?|milliseconds?|milligrams?|mg|"
    r"hours?|days?|weeks?|months?|years?|million|people|kilos?|times a)\b|\b\d+ over \d+",
    re.IGNORECASE,
)
_ABOUT_A_PERSON = 0.9
_SIGNS = (
    (_DECISION, 1.0),
    (_PERSON, _ABOUT_A_PERSON),
    (_PREFERENCE, 0.7),
    (_PLAN, 0.6),
    (_MEASURE, 0.5),
)
_SHORTEST, _LONGEST = 4, 30
_CLEAR = 0.6
_LIGHTEST = 0.15
_ALIKE = 0.67
_SHOWN, _FEWEST = 12, 3


def memories_of(
    sentences: Sequence[Sentence], weights: Sequence[float], language: Language
) -> tuple[Memory, ...]:
    """Return the clearest facts in their order, at most 12.

    A conversation with few signs of any is remembered by its weightiest sentences too.
    """
    chosen = _facts(sentences, weights, language)
    for sentence in select(sentences, weights, limit=_FEWEST):
        if len(chosen) < _FEWEST and all(alike(sentence, other) <= _ALIKE for other in chosen):
            chosen.append(sentence)
    chosen.sort(key=lambda one: one.position)
    if not chosen:
        chosen = sorted(sentences, key=lambda one: -len(set(one.stems)))[:1]
    return tuple(Memory(told(sentence, language), sentence.segment_ids) for sentence in chosen)[
        :MAX_MEMORIES
    ]


def _facts(
    sentences: Sequence[Sentence], weights: Sequence[float], language: Language
) -> list[Sentence]:
    if not language.english:
        return []
    highest = max(weights, default=0.0) or 1.0
    worth = [_worth(one, weights[one.position] / highest, language) for one in sentences]
    kept: list[Sentence] = []
    for sentence in sorted(sentences, key=lambda one: -worth[one.position]):
        if len(kept) == _SHOWN or worth[sentence.position] <= 0:
            break
        if all(alike(sentence, other) <= _ALIKE for other in kept):
            kept.append(sentence)
    return sorted(kept, key=lambda one: one.position)


def _worth(sentence: Sentence, weight: float, language: Language) -> float:
    size = len(sentence.words)
    if sentence.question or not sentence.whole or not _SHORTEST <= size <= _LONGEST:
        return 0.0
    sign = max((value for pattern, value in _SIGNS if pattern.search(sentence.text)), default=0.0)
    if sentence.words[0] in POINTERS:
        return 0.0
    if not sign or len(set(sentence.stems)) < 2 or readable(sentence, language) < _CLEAR:
        return 0.0
    return sign + 2 * weight if weight >= _LIGHTEST or sign == _ABOUT_A_PERSON else 0.0
