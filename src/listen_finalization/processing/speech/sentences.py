"""Sentences of a conversation: fragments of one speaker joined, split, cleaned and stemmed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
    segment_id: str
    position: int
    whole: bool
    losses: int
    words: tuple[str, ...]
    stems: tuple[str, ...]

    @property
    def question(self) -> bool:
        """Tell whether the sentence asks."""
        return self.text.endswith(("?", "\uff1f", "\u061f"))


@dataclass(slots=True)
class _Turn:
    speaker: str
    parts: list[tuple[str, str]]

    def text(self) -> str:
        return " ".join(text for _, text in self.parts)

    def segment_at(self, offset: int) -> str:
        for segment_id, text in self.parts:
            offset -= len(text) + 1
            if offset < 0:
                return segment_id
        return self.parts[-1][0]


def sentences_of(
    content: Content, language: Language, *, stem: Callable[[str], str]
) -> list[Sentence]:
    """Return the sentences of a conversation that hold at least one word, in order."""
    found: list[Sentence] = []
    for turn in _turns(content.segments):
        for segment_id, raw in _pieces(turn, language):
            cleaned = clean(raw, language)
            words = words_of(cleaned.text)
            if words:
                stems = tuple(stem(word) for word in words if is_content(word, language))
                found.append(
                    Sentence(
                        text=cleaned.text,
                        speaker=turn.speaker,
                        segment_id=segment_id,
                        position=len(found),
                        whole=cleaned.whole,
                        losses=cleaned.losses,
                        words=words,
                        stems=stems,
                    )
                )
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
    stem: Callable[[str], str] = snowballstemmer.stemmer(language.stemmer).stemWord
    return cache(stem)


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
        turn = open_turns.setdefault(segment.speaker, _Turn(segment.speaker, []))
        turn.parts.append((segment.id, text))
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


def _pieces(turn: _Turn, language: Language) -> Iterator[tuple[str, str]]:
    text = turn.text()
    offset = 0
    for sentence in split_sentences(language.code or "en", text):
        segment_id = turn.segment_at(offset)
        offset += len(sentence)
        for unbroken in _RESTART.split(sentence):
            for piece in _cut(unbroken, language):
                yield segment_id, piece


def _cut(sentence: str, language: Language) -> Iterator[str]:
    words = sentence.split(" ")
    if len(words) <= LONGEST:
        yield from (sentence[i : i + _WIDEST] for i in range(0, len(sentence), _WIDEST))
        return
    piece: list[str] = []
    for word in words:
        joint = language.english and len(piece) >= 12 and word.lower() in JOINTS
        if joint or len(piece) >= LONGEST:
            yield " ".join(piece) + "."
            piece = []
        piece.append(word[:_WIDEST])
    yield " ".join(piece)
