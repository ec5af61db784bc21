"""Key phrases: what a conversation is about, in the words that were used for it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from listen_finalization.processing.speech.english import ARTICLES, DETERMINERS, VERB_CUES
from listen_finalization.processing.speech.languages import Language
from listen_finalization.processing.speech.sentences import Sentence, is_content

_Key = tuple[str, ...]

_LONGEST = 3
_SHORT = 40
_LENGTH_BONUS = (0.0, 1.0, 2.2, 2.0)
_CLAUSE = re.compile(r"[,.;:!?()\"\u201c\u201d\u3002\uff01\uff1f\u3001\uff0c\u061f]+")
_TOKEN = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A key phrase as it was most often written, its stems and its weight (above 0).

    `definite` says that the English phrase is one thing, of which people speak with an article.
    """

    text: str
    stems: tuple[str, ...]
    weight: float
    definite: bool = False

    @property
    def with_article(self) -> str:
        """Return the phrase as it stands within a sentence."""
        return f"the {self.text}" if self.definite else self.text


@dataclass(slots=True)
class _Tally:
    """Counts over runs of content words: signs of nouns, and how often a stem is last.

    `eighths` holds a bit for each eighth of the `total` sentences in which a phrase is found.
    """

    total: int
    forms: dict[_Key, dict[str, int]] = field(default_factory=dict)
    eighths: dict[_Key, int] = field(default_factory=dict)
    noun: Counter[str] = field(default_factory=Counter)
    verb: Counter[str] = field(default_factory=Counter)
    last: Counter[str] = field(default_factory=Counter)
    articles: Counter[_Key] = field(default_factory=Counter)


def key_phrases(
    sentences: Sequence[Sentence],
    language: Language,
    *,
    stem: Callable[[str], str],
    limit: int,
    names: Iterable[str] = (),
) -> list[Phrase]:
    """Return at most `limit` phrases that share no stem, the weightiest first.

    `names` are speakers: no topic consists of their words alone.
    """
    tally = _tallied(sentences, language, stem)
    spoken = {stem(word) for name in names for word in name.lower().split()}
    ranked = sorted(_weighed(tally, language), key=lambda p: (-p.weight, p.text))
    chosen: list[Phrase] = []
    taken: set[str] = set()
    for phrase in ranked:
        if taken.isdisjoint(phrase.stems) and not spoken.issuperset(phrase.stems):
            chosen.append(phrase)
            taken.update(phrase.stems)
        if len(chosen) == limit:
            break
    return chosen


def _tallied(
    sentences: Sequence[Sentence], language: Language, stem: Callable[[str], str]
) -> _Tally:
    tally = _Tally(len(sentences))
    for sentence in sentences:
        for before, run in _runs(sentence.text, language):
            _count(tally, run, before, stem, sentence.position)
    return tally


def _runs(text: str, language: Language) -> Iterator[tuple[str, list[str]]]:
    """Yield each run of content words within a clause, with the word before it."""
    for clause in _CLAUSE.split(text):
        before, run = "", list[str]()
        for token in _TOKEN.findall(clause):
            word = token.strip("'`*[]{}\u00ab\u00bb-\u2013\u2014/").removesuffix("'s")
            if word and is_content(word.lower(), language):
                run.append(word)
                continue
            if run:
                yield before, run
            before, run = token.lower(), []
        if run:
            yield before, run


def _count(
    tally: _Tally, run: Sequence[str], before: str, stem: Callable[[str], str], position: int
) -> None:
    stems = [stem(word.lower()) for word in run]
    tally.noun[stems[0]] += before in DETERMINERS
    tally.verb[stems[0]] += before in VERB_CUES
    tally.last[stems[-1]] += 1
    for later in stems[1:]:
        tally.noun[later] += 1
    eighth = 1 << (position * 8 // tally.total)
    for start, end in _spans(len(run)):
        key = tuple(stems[start:end])
        if len(set(key)) == len(key):
            form = " ".join(run[start:end])
            forms = tally.forms.setdefault(key, {})
            forms[form] = forms.get(form, 0) + 1
            tally.eighths[key] = tally.eighths.get(key, 0) | eighth
            if start == 0 and before in ARTICLES:
                tally.articles[key] += 1


def _spans(length: int) -> Iterator[tuple[int, int]]:
    for size in range(1, min(_LONGEST, length) + 1):
        for start in range(length - size + 1):
            yield start, start + size


def _weighed(tally: _Tally, language: Language) -> Iterator[Phrase]:
    nested = Counter[_Key]()
    for key, count in sorted(_frequent(tally), key=lambda item: (-len(item[0]), item[0])):
        own = count - nested[key] * 0.7
        spread = math.sqrt(tally.eighths[key].bit_count() / 8)
        weight = own * _LENGTH_BONUS[len(key)] * spread
        if language.english:
            weight *= _nounness(tally, key, count)
        if weight > 0:
            _note_nested(nested, key, count)
            form = _form(tally.forms[key])
            single = not form.endswith("s") and tally.articles[key] * 5 >= count * 2
            yield Phrase(form, key, weight, definite=single and language.english)


def _frequent(tally: _Tally) -> Iterator[tuple[_Key, int]]:
    """Yield the phrases that were said often enough; in a short conversation once is."""
    short = tally.total < _SHORT
    for key, forms in tally.forms.items():
        count = sum(forms.values())
        if short or count >= (3 if len(key) == 1 else 2):
            yield key, count


def _nounness(tally: _Tally, key: _Key, count: int) -> float:
    last = key[-1]
    noun, verb = tally.noun[last], tally.verb[last]
    share = (noun + 0.5) / (noun + verb + 1)
    if any(form.endswith("ly") for form in tally.forms[key]):
        return 0.0
    if len(key) == 1:
        share *= min(1.0, tally.last[last] / count)
        share *= 0.6 if any(form.endswith("ed") for form in tally.forms[key]) else 1.0
    return share if share >= 0.5 else 0.0


def _note_nested(nested: Counter[_Key], key: _Key, count: int) -> None:
    for start, end in _spans(len(key)):
        if end - start < len(key):
            nested[key[start:end]] = max(nested[key[start:end]], count)


def _form(forms: Mapping[str, int]) -> str:
    best = min(forms, key=lambda form: (-forms[form], form[:1].isupper(), form))
    if forms.get(best + "s", 0) * 4 >= forms[best]:
        best += "s"
    lower = best.lower()
    return lower if lower in forms or (best.istitle() and forms[best] < 2) else best
