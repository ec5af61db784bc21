"""Which sentences tell what a conversation was about, and how alike two of them are."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from listen_finalization.processing.speech.english import (
    BASE_VERBS,
    OWN_WORDS,
    POINTERS,
    SHORT_WORDS,
)
from listen_finalization.processing.speech.languages import Language
from listen_finalization.processing.speech.phrases import Phrase
from listen_finalization.processing.speech.sentences import Sentence

_TELLING = re.compile(
    r"\b(?:decided|agreed|conclu\w+|main|most important|the idea|the (?:basic )?problem is|goal|"
    r"we(?:'re| are) (?:asked|going to|supposed)|we(?:'ll| will| need| have to| should| want)|"
    r"should|plan|project|require\w*|target|budget|deadline|improve\w*|recommend\w*|suggest\w*|"
    r"propos\w+|today|next (?:meeting|week|step|month)|working on|based on|in order to)\b",
    re.IGNORECASE,
)
_PURPOSE = re.compile(
    r"\b(?:we(?:'re| are) (?:asked|here) to|the (?:aim|purpose|goal|agenda) (?:of|is|for)|"
    r"aiming to do|this is (?:our|the) \w+ meeting|(?:we|i)(?:'ve| have)? (?:decided|agreed)|"
    r"in summary|to summari[sz]e|today we|this meeting is|the plan is)\b",
    re.IGNORECASE,
)
_PERSONAL = re.compile(
    r"\b(?:i dunno|i don't know|i'm not sure|sorry|funny|joke|i can't remember|i wonder|i forgot|"
    r"i guess|you know|i mean|whatever|blah|that kind of)\b",
    re.IGNORECASE,
)
_ROUGH = re.compile(
    r"\b(?:the|a|an|our|their|its) (?:the|a|an|we|i|you|they|he|she|it|is|are|was|were|and|but|"
    r"so|or|of|to|in|on|for|with|if|then|that|this|there|well|each|just)\b|\b(?:of|to|with|for|"
    r"from|at|on|by|in) (?:we|i|they|he|she|is|are|was|were|and|but|so|or)\b|\b(?:and|but|or|"
    r"so) (?:but|or|so)\b|\bbut and\b|\band and\b|\bor and\b|\bin to the to\b|\b(?:we|i|they|he|"
    r"she) (?:we|i|they|you|the|a|of|in|is|maybe)\b|\bwe (?:are|have) we\b|\bis (?:are|yeah|okay|"
    r"well|prefer)\b|\bi (?:it|is|that)\b|\bis(?:n't)? is\b|\bthat is it\b|.\b(?:yeah|okay|oh|"
    r"i mean|you know|sort of|kind of|all this stuff)\b|(?<!as )\bwell,| and like |, like |"
    r"\b(?:it|they're|we've|we're|have|was|is|think it) i(?:'m|'ve|'d)? |\bwe(?:'re|'ve|"
    r"'ll)? (?:i|we)\b|(?-i:[a-z] (?:We|They|It|The|You|He|She|There|And|But|So) )|\b(?:is|are|"
    r"was|were|there) like\b|\b(?:are|is) we|\bthe one's\b|\bto (?:the|a) to\b|\band so and\b|"
    r"\bso yeah\b",
    re.IGNORECASE,
)
_FINITE = re.compile(
    r"(?:'s|'re|'ve|'ll|'d|n't)\b|\b(?:is|are|was|were|am|has|have|had|will|would|can|could|"
    r"should|may|might|must|do|does|did|need|needs|want|wants|think|decided|agreed|get|gets|got|"
    r"gives?|gave|makes?|made|takes?|took|uses?|used|shows?|showed|says?|said|works?|worked|goes|"
    r"went|comes?|came|becomes?|became|seems?|looks?|means?|depends?|found|saw|know|knows|like|"
    r"prefer)\b"
)
_SHORTEST, _LONGEST = 7, 34
_ALIKE = 0.45
_WEAKEST = 0.4
_TOPICAL = 1.5
_EARLY = 1.6
_OWN = 0.75


def weigh(
    sentences: Sequence[Sentence], phrases: Iterable[Phrase], language: Language
) -> list[float]:
    """Return the weight of each sentence; 0 is for those that cannot stand in an overview."""
    known = Counter(stem for sentence in sentences for stem in set(sentence.stems))
    topical = {stem for phrase in phrases for stem in phrase.stems}
    worth = {
        stem: math.log1p(count)
        * (_TOPICAL if stem in topical else 1.0)
        * (0.5 if count == 1 else 1.0)
        for stem, count in known.items()
    }
    early = max(12, len(sentences) // 15)
    return [
        _substance(sentence, worth)
        * _manner(sentence, language)
        * (_EARLY if sentence.position < early else 1.0)
        for sentence in sentences
    ]


def _substance(sentence: Sentence, worth: dict[str, float]) -> float:
    unique = dict.fromkeys(sentence.stems)
    return sum(worth[stem] for stem in unique) / math.pow(len(sentence.words) + 6, 0.75)


def _manner(sentence: Sentence, language: Language) -> float:
    size = len(sentence.words)
    if sentence.question or size > 2 * _LONGEST or len(set(sentence.stems)) < 2:
        return 0.0
    factor = 1.0 if _SHORTEST <= size <= _LONGEST else 0.3
    factor *= 1.0 if sentence.whole else 0.35
    return factor * readable(sentence, language) * _told_alone(sentence, language)


def readable(sentence: Sentence, language: Language) -> float:
    """Return how well a sentence is formed, from 0 to 1: repairs and broken joints lower it."""
    size = len(sentence.words)
    factor = max(0.2, 1.0 - 1.8 * sentence.losses / (size + sentence.losses))
    if not language.english:
        return factor
    factor *= 0.4 if sentence.words[0] in BASE_VERBS or '"' in sentence.text else 1.0
    factor *= 0.5 if sentence.words[0].endswith("ed") and size > 1 else 1.0
    factor *= 1.0 if _FINITE.search(sentence.text, 0, 70) else 0.3
    broken = rough_joints(sentence.text) + _stubs(sentence)
    return factor * 0.45 ** min(broken, 9)


def rough_joints(text: str) -> int:
    """Count the places of an English text where speech broke off and began anew."""
    return len(_ROUGH.findall(text))


def _told_alone(sentence: Sentence, language: Language) -> float:
    """Weigh what a sentence is worth without the ones around it."""
    if not language.english:
        return 1.0
    factor = 1.35 if _TELLING.search(sentence.text) else 1.0
    factor *= 1.8 if _PURPOSE.search(sentence.text) else 1.0
    factor *= 0.45 if _PERSONAL.search(sentence.text) else 1.0
    factor *= 0.4 if sentence.words[0] in POINTERS else 1.0
    own = sum(word in OWN_WORDS for word in sentence.words)
    return factor * _OWN ** min(own, 9)


def _stubs(sentence: Sentence) -> int:
    """Count short words that a longer word soon repeats: `the cri basically the criteria`."""
    words = sentence.words
    return sum(
        2 <= len(word) <= 5
        and word not in SHORT_WORDS
        and any(later != word and later.startswith(word) for later in words[index + 1 : index + 13])
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
    highest = max((weights[one.position] for one in chosen), default=0.0)
    chosen = [one for one in chosen if weights[one.position] >= _WEAKEST * highest]
    return _filled(sentences, weights, chosen, limit)


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
        height_here = weight * (1 - overlap) * _voice(sentence, chosen)
        if overlap <= _ALIKE and height_here > height:
            best, height = sentence, height_here
    return best


def _voice(sentence: Sentence, chosen: Sequence[Sentence]) -> float:
    """Weigh a sentence down whose speaker was heard often already."""
    heard = sum(other.speaker == sentence.speaker for other in chosen)
    return 1.0 / (1.0 + 0.15 * heard)


def _filled(
    sentences: Sequence[Sentence],
    weights: Sequence[float],
    chosen: list[Sentence],
    limit: int,
) -> list[Sentence]:
    while len(chosen) < limit and (more := _best(sentences, weights, chosen)):
        chosen.append(more)
    return sorted(chosen, key=lambda sentence: sentence.position)
