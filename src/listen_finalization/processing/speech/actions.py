"""Commitments and requests: what somebody said would be done."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from listen_finalization.domain.content import MAX_ITEM_TEXT, MAX_ITEMS, ActionItem
from listen_finalization.processing.speech.dates import spoken_date
from listen_finalization.processing.speech.english import (
    ACTION_VERBS,
    DELIVERY_VERBS,
    MOMENTARY,
    SHOWING_VERBS,
)
from listen_finalization.processing.speech.languages import Language
from listen_finalization.processing.speech.ranking import alike, rough_joints
from listen_finalization.processing.speech.sentences import Sentence, is_content, words_of

_SOFTENER = (
    r"(?:(?:also|then|just|definitely|probably|still|all|really|first|please|both|try to|"
    r"go and) )*"
)
_PROMISE = re.compile(
    r"\b(?P<who>I|[Ww]e|[Yy]ou|[A-Z][a-z]+(?! (?:need|have) )|somebody|someone)"
    r"(?P<how>'ll| will| shall|'m going to| am going to|'re going to|'m gonna|'re gonna|"
    r" are going to| is going to| need to| needs to| have to| has to| must| should|'d better|"
    rf"'ve got to) {_SOFTENER}(?P<verb>[a-z]+)\b"
)
_REQUEST = re.compile(
    r"(?:\b(?:(?:[Cc]an|[Cc]ould|[Ww]ould|[Ww]ill) (?:you|someone|somebody)|[Ll]et's|[Pp]lease|"
    r"(?:[Dd]on't forget|[Rr]emember|[Mm]ake sure|[Bb]e sure) to|"
    rf"I(?:'d like| want| need) you to)) {_SOFTENER}(?P<verb>[a-z]+)\b"
)
_CONDITION = re.compile(
    r"\b(?:if|when|whether|what|how|why|where|which|who|unless|because|'cause|that|thing|things|"
    r"all) (?:\w+ ){0,3}$",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r",? (?:but|because|'cause|so that we|otherwise|although|though|which means|if you|"
    r"or something)\b.*|, (?:so|and) (?:I|we|you|it|that|this|they)\b.*"
)
_LOOSE = re.compile(r",? (?:and|or|but|so)$")
_MARKS = " .,;:?!'\""
_LONGEST, _SHORTEST = 26, 4
_ENOUGH = 2.4
_ALIKE = 0.8
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class _Task:
    text: str
    sentence: Sentence
    score: float


def action_items_of(sentences: Iterable[Sentence], language: Language) -> tuple[ActionItem, ...]:
    """Return the clearest tasks of a conversation in their order, each once; none but in English.

    At most 12: a list that is longer than a person reads hides what is in it.
    """
    if not language.english:
        return ()
    tasks = [task for sentence in sentences if (task := _task(sentence, language))]
    best = _distinct(sorted(tasks, key=lambda task: -task.score))
    best.sort(key=lambda task: task.sentence.position)
    return tuple(
        ActionItem(task.text, task.sentence.speaker, task.sentence.segment_id) for task in best
    )[:MAX_ITEMS]


def _distinct(tasks: Sequence[_Task]) -> list[_Task]:
    kept: list[_Task] = []
    for task in tasks:
        if all(alike(task.sentence, other.sentence) <= _ALIKE for other in kept):
            kept.append(task)
        if len(kept) == _SHOWN:
            break
    return kept


def _task(sentence: Sentence, language: Language) -> _Task | None:
    if not (sentence.whole and _SHORTEST <= len(sentence.words) <= 2 * _LONGEST):
        return None
    if not MOMENTARY.isdisjoint(sentence.words):
        return None
    found = [*_REQUEST.finditer(sentence.text), *_PROMISE.finditer(sentence.text)]
    tasks = [_read(one, sentence, language) for one in found if one["verb"] in ACTION_VERBS]
    best = max(tasks, key=lambda task: task.score, default=None)
    return best if best and best.score >= _ENOUGH else None


def _names_something(text: str, language: Language) -> bool:
    return any(is_content(word, language) for word in words_of(text))


def _read(found: re.Match[str], sentence: Sentence, language: Language) -> _Task:
    text = _as_sentence(sentence.text[found.start() :])
    score = _score(found, text, sentence) * 0.7 ** rough_joints(text)
    if _CONDITION.search(sentence.text[: found.start()]):
        score = 0.0
    if not _SHORTEST <= len(text.split()) <= _LONGEST or not _names_something(text, language):
        score = 0.0
    return _Task(text[:MAX_ITEM_TEXT], sentence, score)


def _score(found: re.Match[str], text: str, sentence: Sentence) -> float:
    verb, dated = found["verb"], spoken_date(text) is not None
    groups = found.groupdict()
    who, how = groups.get("who"), (groups.get("how") or "").strip()
    together = found[0].lower().startswith("let's")
    if verb in SHOWING_VERBS and (together or not dated):
        return 0.0
    if sentence.question and who is not None:
        return 0.0
    score = 2.0 if verb in DELIVERY_VERBS else 0.9
    score += 1.2 if dated else 0.0
    score += min(len(set(sentence.stems)), 3) * 0.2
    return score + _firmness(who, how, found[0])


def _firmness(who: str | None, how: str, said: str) -> float:
    """Weigh who was bound and how firmly: advice to a general `you` counts least."""
    if who is None:
        return 0.3 if said.lower().startswith("let's") else 1.0
    if who.lower() == "you":
        return 0.2 if how in ("'ll", "should", "will") else 0.0
    if how == "should":
        return 0.4
    return 1.1 if who == "I" or how in ("need to", "needs to", "have to", "has to", "must") else 0.8


def _as_sentence(text: str) -> str:
    mark = text[-1]
    cut = _LOOSE.sub("", _TAIL.sub("", text).rstrip(_MARKS))
    return cut[:1].upper() + cut[1:] + ("?" if mark == "?" else ".")
