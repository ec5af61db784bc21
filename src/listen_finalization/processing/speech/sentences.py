"""Sentences of a conversation: fragments of one speaker joined, split, cleaned and stemmed."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import snowballstemmer  # type: ignore[import-untyped]
from sentencex import segment as split_sentences  # type: ignore[import-untyped]

from listen_finalization.domain.content import Content, Segment
from listen_finalization.processing.speech.cleaning import FINAL, clean, is_tokenised, normalise
from listen_finalization.processing.speech.english import JOINTS
from listen_finalization.processing.speech.languages import Language

LONGEST = 45
"""Words of a sentence; a longer stretch without punctuation is cut."""

_WIDEST = 400
_JOINED = 12
_STEMMED = 32
_SOURCES = 8
_SPOKEN = re.compile(r"\S+")
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff]{1,2}|[^\W_\u3040-\u30ff\u3400-\u9fff]+(?:['-][^\W_]+)*"
)
_RESTART = re.compile(r"(?:\s\s|\s?--|\s?\u2014)\s*(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of one speaker.

    `position` counts sentences from 0; `words` are lower-case; `stems` are those of content words
    in order; `losses` is the number of fillers, repeats and breaks that cleaning met.
    """

    text: str
    speaker: str
    segment_ids: tuple[str, ...]
    position: int
    whole: bool
    losses: int
    words: tuple[str, ...]
    stems: tuple[str, ...]

    @property
    def segment_id(self) -> str:
        """Return where the sentence begins."""
        return self.segment_ids[0]

    @property
    def question(self) -> bool:
        """Tell whether the sentence asks."""
        return self.text.endswith(("?", "\uff1f", "\u061f"))


@dataclass(slots=True)
class _Turn:
    """What one speaker said in one go: segment ids, where each begins, and the texts."""

    speaker: str
    ids: list[str] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    length: int = 0

    def add(self, segment_id: str, text: str) -> None:
        self.ids.append(segment_id)
        self.begins.append(self.length)
        self.texts.append(text)
        self.length += len(text) + 1

    def sources(self, start: int, end: int) -> tuple[str, ...]:
        """Return the ids of the segments from which the characters `start` to `end` come."""
        first = bisect_right(self.begins, start) - 1
        last = bisect_left(self.begins, max(end, start + 1))
        return tuple(dict.fromkeys(self.ids[first : min(last, first + _SOURCES)]))


def sentences_of(
    content: Content, language: Language, *, stem: Callable[[str], str]
) -> list[Sentence]:
    """Return the sentences of a conversation that hold at least one word, in order.

    Where most have no full stop, the transcript has none to judge by: all count as whole.
    """
    found: list[Sentence] = []
    for turn in _turns(content.segments):
        for sources, raw in _pieces(turn, language):
            cleaned = clean(raw, language)
            words = words_of(cleaned.text)
            if words:
                stems = tuple(stem(word) for word in words if is_content(word, language))
                found.append(
                    Sentence(
                        text=cleaned.text,
                        speaker=turn.speaker,
                        segment_ids=sources,
                        position=len(found),
                        whole=cleaned.whole,
                        losses=cleaned.losses,
                        words=words,
                        stems=stems,
                    )
                )
    if 2 * sum(sentence.whole for sentence in found) <= len(found):
        return [replace(sentence, whole=True) for sentence in found]
    return found


def words_of(text: str) -> tuple[str, ...]:
    """Return the lower-case words of a text; scripts without spaces give pairs of characters."""
    return tuple(word[:_WIDEST] for word in _WORD.findall(text.lower()))


def is_content(word: str, language: Language) -> bool:
    """Tell whether a word carries a topic."""
    if word in language.stop or word[0].isdigit():
        return False
    return len(word) > (1 if language.stop or not word.isascii() else 3)


def stemmer_of(language: Language) -> Callable[[str], str]:
    """Return a memoising stemmer for one reading; a language without one keeps its words.

    It remembers words that were said and is not safe for threads: make one per reading.
    """
    if not language.stemmer:
        return str
    snowball: Callable[[str], str] = snowballstemmer.stemmer(language.stemmer).stemWord
    return cache(lambda word: snowball(word) if word.isalpha() and len(word) < _STEMMED else word)


def _turns(segments: Sequence[Segment]) -> Iterator[_Turn]:
    tokenised = is_tokenised(segment.text for segment in segments)
    open_turns: dict[str, _Turn] = {}
    for segment in segments:
        text = normalise(segment.text, tokenised=tokenised).strip()
        if not text:
            continue
        yield from _closed_by(open_turns, segment.speaker, text)
        if segment.speaker in open_turns and not _continues(text):
            yield open_turns.pop(segment.speaker)
        turn = open_turns.setdefault(segment.speaker, _Turn(segment.speaker))
        turn.add(segment.id, text)
        if text[-1] in FINAL or text[-1] == '"':
            yield open_turns.pop(segment.speaker)
    yield from open_turns.values()


def _continues(text: str) -> bool:
    first = text.split(" ", 1)[0]
    return not first[:1].isupper() or first == "I" or first.startswith("I'")


def _closed_by(open_turns: dict[str, _Turn], speaker: str, text: str) -> Iterator[_Turn]:
    """Take out the turns that a new segment ends: a short reply of another ends none."""
    reply = text.count(" ") < 3
    for other in [name for name in open_turns if name != speaker]:
        if not reply or len(open_turns) > 8:
            yield open_turns.pop(other)


def _pieces(turn: _Turn, language: Language) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the raw sentences of a turn with their segment ids."""
    offset = 0
    for sentence in split_sentences(language.code or "en", " ".join(turn.texts)):
        begin = offset
        offset += len(sentence)
        for start, piece in _unbroken(sentence, language):
            at = begin + start + len(piece) - len(piece.lstrip())
            yield turn.sources(at, begin + start + len(piece.rstrip())), piece


def _unbroken(sentence: str, language: Language) -> Iterator[tuple[int, str]]:
    """Yield the stretches between restarts, cut to a readable length, and where they begin."""
    begin = 0
    for restart in _RESTART.finditer(sentence):
        yield from _cut(sentence, begin, restart.start(), language)
        begin = restart.end()
    yield from _cut(sentence, begin, len(sentence), language)


def _cut(sentence: str, begin: int, end: int, language: Language) -> Iterator[tuple[int, str]]:
    first, count = begin, 0
    whole = sentence.count(" ", begin, end) < LONGEST
    for word in _SPOKEN.finditer(sentence, begin, end):
        joint = language.english and count >= _JOINED and word[0].lower() in JOINTS
        wide = word.end() - first > _WIDEST and count > 0
        if (not whole and (joint or count >= LONGEST)) or wide:
            yield first, sentence[first : word.start()].rstrip() + ("." if joint else "")
            first, count = word.start(), 0
        count += 1
    yield from ((at, sentence[at : at + _WIDEST]) for at in range(first, end, _WIDEST))
