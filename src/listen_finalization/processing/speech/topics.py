"""What a conversation is filed under: its title and its category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from math import log1p

from listen_finalization.domain.content import MAX_TITLE
from listen_finalization.processing.speech.english import CATEGORIES
from listen_finalization.processing.speech.languages import Language, language_of
from listen_finalization.processing.speech.narration import enumerated
from listen_finalization.processing.speech.phrases import Phrase
from listen_finalization.processing.speech.sentences import Sentence, stemmer_of

_HEADED = 60
_SIDE_TOPICS = 3
_SURE = 1.5


def title_of(
    phrases: Sequence[Phrase], sentences: Sequence[Sentence], language: Language, *, occasion: str
) -> str:
    """Return a title such as `Remote control: channels, buttons and programmes`, never empty.

    `occasion` is the title of the calendar's meeting, or empty; it leads when there is one.
    """
    topics = [phrase.text for phrase in phrases]
    head, sides = (occasion, topics) if occasion else (topics[0] if topics else "", topics[1:])
    if not head:
        return _beginning(sentences)
    title = head[:1].upper() + head[1:]
    if sides:
        shown = sides[:_SIDE_TOPICS]
        title += ": " + (enumerated(shown) if language.english else ", ".join(shown))
    return _shortened(title, MAX_TITLE)


def category_of(sentences: Sequence[Sentence], language: Language) -> str:
    """Return one of the categories, or `other` when no keyword speaks for one."""
    if not language.english:
        return "other"
    heard = Counter(one for sentence in sentences for one in sentence.stems)
    scores = {
        name: sum(log1p(heard[keyword]) for keyword in keywords)
        for name, keywords in _keyword_stems().items()
    }
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] >= _SURE else "other"


@cache
def _keyword_stems() -> Mapping[str, frozenset[str]]:
    stem = stemmer_of(language_of("en"))
    return {name: frozenset(map(stem, keywords)) for name, keywords in CATEGORIES.items()}


def _beginning(sentences: Sequence[Sentence]) -> str:
    for sentence in sentences:
        return _shortened(sentence.text.rstrip(".!?\u2026"), _HEADED)
    return "Conversation"


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return (text[: limit - 1].rsplit(" ", 1)[0] or text[: limit - 1]).rstrip(" ,:;") + "\u2026"
