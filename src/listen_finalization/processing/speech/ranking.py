"""Which sentences tell what a conversation was about, and how alike two of them are."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from listen_finalization.processing.speech.lexicon import (
    BASE_VERBS,
    POINTERS,
    SHORT_WORDS,
    Language,
)
from listen_finalization.processing.speech.phrases import Phrase
from listen_finalization.processing.speech.sentences import Sentence

_TELLING = re.compile(
    r"\b(?:decided|agreed|conclu\w+|main|most important|the idea|the (?:basic )?problem is|goal|"
    r"we(?:'re| are) (?:asked|going to|supposed)|we(?:'ll| will| need| have to| should| want)|"
    r"should|plan|project|require\w*|target|budget|deadline|improve\w*|recommend\w*|suggest\w*|"
    r"propos\w+|today|next (?:meeting|week|step|month)|working on|based on|in order to)\b",
    re.IGNORECASE,
)
_PERSONAL = re.compile(
    r"\b(?:i dunno|i don't know|i'm not sure|sorry|funny|joke|i can't remember|i wonder|i forgot|"
    r"i guess|you know|i mean|whatever|blah|that kind of)\b",
    re.IGNORECASE,
)
_ROUGH = re.compile(
    r"\b(?:the|a|an|our|their|its) (?:the|a|an|we|i|you|they|he|she|it|is|are|was|were|and|but|so|or|"
    r"of|to|in|on|for|with|if|then|that|this|there|well|each|just)\b"
    r"|\b(?:of|to|with|for|from|at|on|by|in) (?:we|i|they|he|she|is|are|was|were|and|but|so|or)\b"
    r"|\b(?:and|but|or|so) (?:but|or|so)\b|\bbut and\b|\band and\b|\bor and\b|\bin to the to\b"
    r"|\b(?:we|i|they|he|she) (?:we|i|they|you|the|a|of|in|is|maybe)\b|\bwe (?:are|have) we\b"
    r"|\bis (?:are|yeah|okay|well|prefer)\b|\bi (?:it|is|that)\b|\bis(?:n't)? is\b|\bthat is it\b"
    r"|.\b(?:yeah|okay|oh|i mean|you know|sort of|kind of|gonna)\b|(?<!as )\bwell,| and like |, like "
    r"|\b(?:are|is) we|\bthe one's\b|\bto (?:the|a) to\b|\band so and\b|\bso yeah\b",
    re.IGNORECASE,
)
_FINITE = re.compile(
    r"(?:'s|'re|'ve|'ll|'d|n't)\b|\b(?:is|are|was|were|am|has|have|had|will|would|can|could|should|may|"
    r"might|must|do|does|did|need|needs|want|wants|think|decided|agreed|get|gets|got|gives?|gave|"
    r"makes?|made|takes?|took|uses?|used|shows?|showed|says?|said|works?|worked|goes|went|comes?|"
    r"came|becomes?|became|seems?|looks?|means?|depends?|found|saw|know|knows|like|prefer)\b"
)
_SHORTEST, _LONGEST = 7, 34
_ALIKE = 0.45


def weigh(
    sentences: Sequence[Sentence], phrases: Iterable[Phrase], language: Language
) -> list[float]:
    """Return the weight of each sentence; 0 is for those that cannot stand in an overview."""
    known = Counter(stem for sentence in sentences for stem in set(sentence.stems))
    topical = {stem for phrase in phrases for stem in phrase.stems}
    worth = {
        stem: math.log1p(count) * (2.0 if stem in topical else 1.0) * (0.5 if count == 1 else 1.0)
        for stem, count in known.items()
    }
    strict = 2 * sum(sentence.whole for sentence in sentences) > len(sentences)
    return [
        _substance(sentence, worth) * _manner(sentence, language, strict=strict)
        for sentence in sentences
    ]


def _substance(sentence: Sentence, worth: dict[str, float]) -> float:
    unique = dict.fromkeys(sentence.stems)
    return sum(worth[stem] for stem in unique) / (len(sentence.words) + 6) ** 0.75


def _manner(sentence: Sentence, language: Language, *, strict: bool) -> float:
    size = len(sentence.words)
    if sentence.question or size > 2 * _LONGEST or len(set(sentence.stems)) < 2:
        return 0.0
    factor = 1.0 if _SHORTEST <= size <= _LONGEST else 0.3
    factor *= 1.0 if sentence.whole or not strict else 0.35
    factor *= max(0.2, 1.0 - 1.8 * sentence.losses / (size + sentence.losses))
    return factor * (_manner_of_english(sentence) if language.english else 1.0)


def _manner_of_english(sentence: Sentence) -> float:
    factor = 1.35 if _TELLING.search(sentence.text) else 1.0
    factor *= 0.45 if _PERSONAL.search(sentence.text) else 1.0
    factor *= 0.6 if sentence.words[0] in POINTERS else 1.0
    factor *= 0.4 if sentence.words[0] in BASE_VERBS or '"' in sentence.text else 1.0
    factor *= 1.0 if _FINITE.search(sentence.text, 0, 70) else 0.3
    factor *= 0.45 ** (len(_ROUGH.findall(sentence.text)) + _stubs(sentence))
    own = sum(
        word in ("i", "i'm", "i've", "my", "me", "he", "she", "them") for word in sentence.words
    )
    return factor * 0.85**own


def _stubs(sentence: Sentence) -> int:
    """Count short words that a longer word soon repeats: `the cri basically the criteria`."""
    words = sentence.words
    return sum(
        2 <= len(word) <= 5
        and word not in SHORT_WORDS
        and any(later != word and later.startswith(word) for later in words[index + 1 : index + 8])
        for index, word in enumerate(words)
    )


def alike(one: Sentence, other: Sentence) -> float:
    """Return the share of the shorter sentence's content that both have, from 0 to 1."""
    left, right = set(one.stems), set(other.stems)
    return len(left & right) / max(1, min(len(left), len(right)))


def select(
    sentences: Sequence[Sentence], weights: Sequence[float], *, limit: int
) -> list[Sentence]:
    """Return at most `limit` sentences in their order, spread over the conversation.

    Each part of the conversation gives its best one, so that no two are nearly the same.
    """
    chosen: list[Sentence] = []
    for part in _parts(sentences, limit):
        best = _best(part, weights, chosen)
        if best is not None:
            chosen.append(best)
    if len(chosen) < min(limit, 2):
        return _filled(sentences, weights, chosen, limit)
    return chosen


def _parts(sentences: Sequence[Sentence], count: int) -> list[list[Sentence]]:
    total = sum(len(sentence.words) for sentence in sentences)
    parts: list[list[Sentence]] = [[] for _ in range(count)]
    seen = 0
    for sentence in sentences:
        parts[min(count - 1, seen * count // max(1, total))].append(sentence)
        seen += len(sentence.words)
    return parts


def _best(
    part: Iterable[Sentence], weights: Sequence[float], chosen: Sequence[Sentence]
) -> Sentence | None:
    best, height = None, 0.0
    for sentence in part:
        weight = weights[sentence.position]
        if weight <= height:
            continue
        overlap = max((alike(sentence, other) for other in chosen), default=0.0)
        if overlap <= _ALIKE and weight * (1 - overlap) > height:
            best, height = sentence, weight * (1 - overlap)
    return best


def _filled(
    sentences: Sequence[Sentence],
    weights: Sequence[float],
    chosen: list[Sentence],
    limit: int,
) -> list[Sentence]:
    while len(chosen) < limit and (more := _best(sentences, weights, chosen)):
        chosen.append(more)
    return sorted(chosen, key=lambda sentence: sentence.position)
