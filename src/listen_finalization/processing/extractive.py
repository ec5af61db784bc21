"""The processor that needs nothing but the transcript: no network, no model, same in, same out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from listen_finalization.domain.content import MAX_OVERVIEW, Content, Enrichment, Memory
from listen_finalization.processing.protocol import Request
from listen_finalization.processing.speech.actions import action_items_of
from listen_finalization.processing.speech.dates import events_of
from listen_finalization.processing.speech.facts import memories_of
from listen_finalization.processing.speech.languages import Language, language_of
from listen_finalization.processing.speech.narration import narrated, opening
from listen_finalization.processing.speech.phrases import Phrase, key_phrases
from listen_finalization.processing.speech.ranking import select, weigh
from listen_finalization.processing.speech.sentences import Sentence, sentences_of, stemmer_of
from listen_finalization.processing.speech.topics import category_of, title_of

_TOPICS = 8
_FEWEST_CONTENT_WORDS = 5
_LENGTHS = ((60, 2), (200, 3), (600, 4), (1_800, 5))
_LONGEST = 6


class ExtractiveProcessor:
    """Writes the record in the conversation's own sentences.

    Satisfies `Processor`. English is read with its grammar; other languages get a title, an
    overview and memories by generic rules, but no action items and no events. Ignores
    `request.timeout`: 10,000 words take about a tenth of a second.
    """

    def enrich(self, request: Request) -> Enrichment | None:
        """Return the record; None when no word was said.

        It is marked for discarding when fewer than five words carry content, unless
        `request.force_process`.
        """
        reading = _read(request.content)
        if not reading.sentences:
            return None
        return Enrichment(
            title=title_of(
                reading.phrases,
                reading.sentences,
                reading.language,
                occasion=_occasion(request.content),
            ),
            overview=_overview(reading),
            category=category_of(reading.sentences, reading.language),
            action_items=action_items_of(reading.sentences, reading.language),
            events=events_of(reading.sentences, reading.language),
            discard=reading.empty and not request.force_process,
        )

    def memories(self, request: Request, enrichment: Enrichment) -> Sequence[Memory]:
        """Return what is worth remembering; nothing for a record that is to be discarded."""
        reading = _read(request.content)
        if enrichment.discard or not reading.sentences:
            return ()
        return memories_of(reading.sentences, reading.weights, reading.language)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A conversation as it was understood; speakers are ordered by how much they said."""

    language: Language
    sentences: list[Sentence]
    speakers: list[str]
    phrases: list[Phrase]
    weights: list[float]

    @property
    def empty(self) -> bool:
        return sum(len(sentence.stems) for sentence in self.sentences) < _FEWEST_CONTENT_WORDS


def _read(content: Content) -> _Reading:
    language = language_of(content.language)
    stem = stemmer_of(language)
    sentences = sentences_of(content, language, stem=stem)
    said = Counter[str]()
    for sentence in sentences:
        said[sentence.speaker] += len(sentence.words)
    speakers = [speaker for speaker, _ in said.most_common()]
    phrases = key_phrases(sentences, language, stem=stem, limit=_TOPICS, names=speakers)
    weights = weigh(sentences, phrases, language)
    return _Reading(language, sentences, speakers, phrases, weights)


def _overview(reading: _Reading) -> str:
    spoken = sum(len(sentence.words) for sentence in reading.sentences)
    limit = next((count for words, count in _LENGTHS if spoken < words), _LONGEST)
    chosen = select(reading.sentences, reading.weights, limit=limit) or reading.sentences[:limit]
    alone = len(reading.speakers) == 1
    lead = opening(reading.speakers, reading.phrases) if reading.language.english else ""
    text = narrated(chosen, reading.language, alone=alone)
    return _bounded(f"{lead} {text}".strip())


def _bounded(text: str) -> str:
    if len(text) <= MAX_OVERVIEW:
        return text
    return text[: MAX_OVERVIEW - 1].rsplit(" ", 1)[0][: MAX_OVERVIEW - 1] + "\u2026"


def _occasion(content: Content) -> str:
    title = (content.calendar_context or {}).get("title")
    if not isinstance(title, str):
        return ""
    plain = "".join(c if c.isprintable() else " " for c in title)
    return " ".join(plain.encode("utf-8", "replace").decode("utf-8").split())
