"""From speech as it was transcribed to a sentence that can be read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from listen_finalization.processing.speech.english import (
    CLOSERS,
    EMPTY_PAIRS,
    NUMBERS,
    REAL_PAIRS,
    SHORT_WORDS,
    SUBJECTS,
)
from listen_finalization.processing.speech.languages import Language

FINAL = ".!?\u2026\u3002\uff01\uff1f\u061f\u0964\u06d4"
"""What ends a sentence, in the scripts that have a mark of their own."""

_ASKING = ("?", "\uff1f", "\u061f")
_EDGES = FINAL + (
    "\"'`,;:-\u2013\u2014()[]{}\u00ab\u00bb\u201c\u201d\u201e*/\u00bf\u00a1\u060c\u061b\u3001\uff0c"
)
_QUOTES = "\"')\u201d\u00bb"
_SPELLED = re.compile(r"\b(?:[^\W\d_]_)+")
_CLITIC = re.compile(r" (['](?:s|re|ve|ll|d|m|t)\b)", re.IGNORECASE)
_SPACED_HYPHEN = re.compile(r"(\w+) - (?=(\w+))")
_BREAK = re.compile(r"\s{2,}|--|\u2014|\.\.\.|\u2026")
_LOW_I = re.compile(r"(?<![\w'])i(?=$|[\s,']) ?")
_LONGEST_REPEAT = 6
_VOWELS = frozenset("aeiouy")
_ENDINGS = frozenset(("", "s", "es", "ed", "er", "ers", "ly", "ing", "al", "d", "r", "'s"))


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A readable sentence. `whole` says that the speaker ended it; `losses` counts repairs."""

    text: str
    whole: bool
    losses: int


def normalise(text: str, *, tokenised: bool) -> str:
    """Return `text` as valid NFC without control characters.

    `tokenised` says that the transcript writes `it 's` and `low - pass` for `it's`, `low-pass`.
    """
    valid = text.encode("utf-8", "replace").decode("utf-8")
    if not valid.isprintable():
        valid = "".join(c if c.isprintable() or c.isspace() else " " for c in valid)
    plain = unicodedata.normalize("NFC", valid).replace("\u2019", "'")
    if "_" in plain:
        plain = _SPELLED.sub(lambda match: match[0].replace("_", ""), plain).replace("_", " ")
    if tokenised:
        plain = _SPACED_HYPHEN.sub(_joined, _CLITIC.sub(r"\1", plain))
    return plain


def _joined(match: re.Match[str]) -> str:
    """Return a hyphenated word; a repeated word, or a new start, was a dash."""
    left, right = match[1], match[2]
    if left.lower() == right.lower():
        return left + " "
    return left + ("  " if right.istitle() and not left.istitle() else "-")


def is_tokenised(texts: Iterable[str]) -> bool:
    """Tell whether a transcript separates clitics and hyphens by spaces."""
    return any(" 's " in text or " 're " in text for text in texts)


def clean(raw: str, language: Language) -> Cleaned:
    """Drop fillers, stutters and empty openings; start upper-case and end with a stop.

    The text is empty when nothing but fillers was said.
    """
    tokens = raw.split()
    ending = raw.rstrip(_QUOTES + " \t\n")[-1:]
    kept = _without_fillers(tokens, language)
    if language.english:
        kept = _without_false_starts(kept)
    kept = _without_edges(_without_repeats(kept), language)
    losses = len(tokens) - len(kept) + len(_BREAK.findall(raw.strip()))
    text = _written(kept, question=ending in _ASKING)
    return Cleaned(text, bool(ending) and ending in FINAL, losses)


def bare(token: str) -> str:
    """Return a token as it is compared: lower-case, without punctuation at its edges."""
    return token.strip(_EDGES).lower() or token.lower()


def _without_fillers(tokens: Sequence[str], language: Language) -> list[str]:
    kept: list[str] = []
    for token in tokens:
        if bare(token) not in language.fillers:
            kept.append(token)
        elif kept and token.endswith(","):
            kept[-1] = kept[-1].rstrip(",")
    return kept


def _without_false_starts(tokens: Sequence[str]) -> list[str]:
    plain = [bare(token) for token in tokens]
    return [
        token
        for index, token in enumerate(tokens)
        if not _is_false_start(token, plain[index], plain[index + 1 : index + 4])
    ]


def _is_false_start(token: str, word: str, following: Sequence[str]) -> bool:
    if following and following[0].startswith(word + "'") and token.isalpha():
        return True
    if word in NUMBERS or word in SHORT_WORDS or not token.replace("-", "").isalpha():
        return False
    if len(word) > 5:
        return _is_cut_off(word, following[0]) if following else False
    if token.islower() and (len(word) == 1 or (len(word) <= 3 and not set(word) & _VOWELS)):
        return word not in ("n", "x")
    ahead = following[:1] if len(word) > 3 else following
    return any(len(later) > len(word) and later.startswith(word) for later in ahead)


def _is_cut_off(word: str, later: str) -> bool:
    return later.startswith(word) and later[len(word) :] not in _ENDINGS


def _without_repeats(tokens: Sequence[str]) -> list[str]:
    kept: list[str] = []
    plain: list[str] = []
    for token in tokens:
        kept.append(token)
        plain.append(bare(token))
        dropped = _repeated(kept, plain)
        if dropped:
            first, last = dropped
            if kept[first][:1].isupper():
                kept[last] = kept[last][:1].upper() + kept[last][1:]
            del kept[first:last], plain[first:last]
    return kept


def _repeated(kept: Sequence[str], plain: Sequence[str]) -> tuple[int, int] | None:
    """Return where the first of two equal runs of words begins and where the second does."""
    total = len(plain)
    for size in range(1, min(_LONGEST_REPEAT, total // 2) + 1):
        tail = plain[-size:]
        for gap in (0, 1, 2) if size >= 2 and tail[0] in SUBJECTS else (0,):
            first, last = total - 2 * size - gap, total - size
            if first < 0 or plain[first] != tail[0]:
                continue
            if plain[first : first + size] == tail and _is_speech(tail):
                between = kept[first + size - 1 : last] if gap else ()
                if not any(_separates(token) for token in between):
                    return first, last
    return None


def _separates(token: str) -> bool:
    return token[-1] in ",;:" or token[-1] in FINAL or token.lower() in ("and", "or", "but", "to")


def _is_speech(words: Sequence[str]) -> bool:
    return not any(word in NUMBERS or not word[:1].isalpha() for word in words)


def _without_edges(tokens: Sequence[str], language: Language) -> list[str]:
    first, last = 0, len(tokens)
    while first < last and (step := _empty_opening(tokens[first : first + 2], language)):
        first += step
    while language.english and last - first > 1 and _closes_empty(tokens[last - 2 : last]):
        last -= 1
    return list(tokens[first:last])


def _empty_opening(tokens: Sequence[str], language: Language) -> int:
    pair = " ".join(bare(token) for token in tokens)
    if language.english and pair in EMPTY_PAIRS:
        return 2
    if language.english and _is_stub(*tokens[:2]):
        return 1
    return int(bare(tokens[0]) in language.openers and pair not in REAL_PAIRS)


def _is_stub(first: str, *following: str) -> bool:
    """Tell whether an opening token is the rest of a word that was not said to its end."""
    if len(first) == 1:
        return first.isalpha() and first not in "AIai"
    short = len(first) == 2 and first.isalpha() and first.lower() not in SHORT_WORDS
    return short and not first.isupper() and any(bare(word) in SUBJECTS for word in following)


def _closes_empty(tokens: Sequence[str]) -> bool:
    word = bare(tokens[1])
    if word in ("right", "okay", "yeah", "no", "well"):
        return tokens[0].endswith(",")
    return word in CLOSERS


def _written(tokens: Sequence[str], *, question: bool) -> str:
    text = " ".join(tokens).replace(" ,", ",").replace(" .", ".").strip(" ,;:-\u2013\u2014\u2026")
    text = text.lstrip(".!?")
    if not any(c.isalnum() for c in text):
        return ""
    if text.count('"') % 2:
        text = text.replace('"', "").strip()
    if "i" in text.split(" ") or text.startswith("i'"):
        text = _LOW_I.sub(lambda match: match[0].upper(), text)
    text = text[:1].upper() + text[1:]
    return _ended(text, question=question)


def _ended(text: str, *, question: bool) -> str:
    closing = text[len(text.rstrip(_QUOTES)) :]
    body = text.rstrip(_QUOTES)
    mark = body[-1:] if body[-1:] in FINAL else ""
    body = body.rstrip(" ,;:-\u2013\u2014" + FINAL) if mark in (".", "\u2026", "") else body
    if body[-1:] in FINAL:
        return body + closing
    return body + ("?" if question else mark.replace("\u2026", ".") or ".") + closing
