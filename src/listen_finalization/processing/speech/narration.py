"""Sentences that tell who said what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from listen_finalization.processing.speech.english import (
    BASE_VERBS,
    COMMON_STARTS,
    SHORT_WORDS,
)
from listen_finalization.processing.speech.languages import Language
from listen_finalization.processing.speech.phrases import Phrase
from listen_finalization.processing.speech.sentences import Sentence

_BELIEF = re.compile(
    r"^(?:I (?:also )?(?:think|guess|believe|suppose)(?: that)?|I'd say),? (?=\w)", re.I
)
_OWN = re.compile(
    r"\b(?:I|I'm|I've|I'll|I'd|me|my|mine|myself|you|your|yours|you're|you'll|you've)\b", re.I
)
_GENERIC_YOU = re.compile(r"\b(?:if you|you can|you could|you just|you have to|you need)\b", re.I)
_ADVICE = re.compile(
    r"\b(?:should|could|let's|maybe|perhaps|would be (?:good|nice|better)|why don't)\b", re.I
)
_LISTED = 4
_TOPICS = 6
_NAME_LENGTH = 60


def told(sentence: Sentence, language: Language, *, again: bool = False) -> str:
    """Return a sentence with its speaker: `Marketing said that the price is 25 euro.`

    `again` says that the same speaker was named just before. Speech about oneself or to another
    stays direct. A language without grammar rules gives `Marketing: ...`.
    """
    name = named(sentence.speaker)
    if not name:
        return sentence.text
    if not language.english:
        return f"{name}: {sentence.text}"
    belief = _BELIEF.match(sentence.text)
    rest = sentence.text[belief.end() :] if belief else sentence.text
    if sentence.question or not _can_be_reported(rest, sentence):
        quoted = sentence.text.replace('"', "'")
        verb = "asked" if sentence.question else "added" if again else "said"
        return f'{name} {verb}: "{quoted}"'
    verb = "thought" if belief else "suggested" if _ADVICE.search(rest) else "said"
    verb = "added" if again and verb == "said" else verb
    return f"{name} {verb} that {lowered(rest)}"


def narrated(sentences: Sequence[Sentence], language: Language, *, alone: bool) -> str:
    """Return sentences as one paragraph; `alone` is for a conversation with one speaker."""
    if alone:
        return " ".join(sentence.text for sentence in sentences)
    again = [False, *(one.speaker == other.speaker for one, other in pairwise(sentences))]
    return " ".join(
        told(sentence, language, again=repeated)
        for sentence, repeated in zip(sentences, again, strict=True)
    )


def opening(speakers: Sequence[str], phrases: Sequence[Phrase]) -> str:
    """Return the English sentence that names the speakers and their topics, or nothing."""
    names = [name for name in map(named, speakers) if name]
    if not phrases or not names:
        return ""
    topics = enumerated([phrase.with_article for phrase in phrases[:_TOPICS]])
    if len(names) == 1:
        return f"{names[0]} talked about {topics}."
    rest = len(names) - _LISTED
    shown = names if rest <= 1 else [*names[:_LISTED], f"{rest} others"]
    return f"{enumerated(shown)} discussed {topics}."


def enumerated(parts: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def named(speaker: str) -> str:
    """Return a speaker as it is written in a sentence: one line, at most 60 characters."""
    valid = speaker.encode("utf-8", "replace").decode("utf-8")
    plain = "".join(c if c.isprintable() else " " for c in valid)
    return " ".join(plain.split())[:_NAME_LENGTH].strip()


def lowered(text: str) -> str:
    """Return a sentence as it stands within another one: names keep their capital."""
    first = text.split(" ", 1)[0]
    word = first.strip(",.'").lower()
    known = word in SHORT_WORDS or word in COMMON_STARTS or word.split("'")[0] in SHORT_WORDS
    return (
        text[:1].lower() + text[1:]
        if known and not first.startswith("I'") and first != "I"
        else text
    )


def _can_be_reported(rest: str, sentence: Sentence) -> bool:
    first = rest.split(" ", 1)[0].strip(",").lower()
    if first in BASE_VERBS:
        return False
    if lowered(rest) == rest and not rest[:1].islower():
        return False
    owns = len(_OWN.findall(rest)) - len(_GENERIC_YOU.findall(rest))
    return owns <= 0 and len(sentence.words) > 3
