"""Transcript files: our JSON, WebVTT and SubRip, read into segments.

Errors name the file, the place and what to do, and never repeat what was said.
"""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pysubs2

from listen_finalization.domain.content import Segment
from listen_finalization.errors import ListenFinalizationError

MAX_BYTES = 64 * 1024 * 1024
"""The largest file that is read: about a thousand hours of speech."""

NOBODY = "Speaker"
"""The speaker of a segment that names none."""

_MAX_ID = 100
_NAME = re.compile(r"^[^\W_a-z][\w.'-]*(?: [\w.'()-]+){0,3}$")
_NAMED = re.compile(r"^(?:>> ?|- ?)?([^:\n]{1,40}): +(?=\S)")
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?[ \t]+([^>]*)>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z0-9][^<>]*>|\{\\[^{}]*\}")
_COMMENTS = ("NOTE", "STYLE", "REGION")
_NEGATIVE = re.compile(r"(?:^|\s)-\d")


class TranscriptError(ListenFinalizationError):
    """This file is not a transcript that can be read."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation of a file; `conversation_id` has 1 to 100 of `A-Za-z0-9_-`."""

    conversation_id: str
    language: str
    segments: tuple[Segment, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Cue:
    line: int
    start: float
    end: float
    text: str = field(repr=False)


def read_transcript(path: Path) -> Transcript:
    """Return the transcript that a file holds; raise `TranscriptError` when it holds none.

    JSON is `{"id"?, "language"?, "segments": [{"id"?, "speaker"?, "start"?, "end"?, "text"}]}` with
    times in seconds. Without an id, the name of the file becomes the id of the conversation.
    """
    text = _text_of(path)
    kind = _format_of(path, text)
    if kind == "json":
        return _from_json(path, text)
    segments = tuple(_from_cues(list(_cues(path, text, kind))))
    if not segments:
        raise _error(path, "no cue holds any text", "check that it is the transcript you mean")
    return Transcript(safe_id(path.stem), "en", segments)


def safe_id(name: str) -> str:
    """Return a name in `A-Za-z0-9_-`, 1 to 100 long; a changed one ends in a hash of the old."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name)
    if plain == name and 0 < len(name) <= _MAX_ID:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    stem = plain.strip("-")[: _MAX_ID - len(digest) - 1]
    return f"{stem}-{digest}" if stem else f"conversation-{digest}"


def _error(path: Path, problem: str, remedy: str) -> TranscriptError:
    return TranscriptError(f"{path}: {problem}; {remedy}")


def _text_of(path: Path) -> str:
    data = _bytes_of(path)
    if len(data) > MAX_BYTES:
        raise _error(path, "is larger than 64 MiB", "split it into one file per conversation")
    text = _decoded(path, data).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise _error(path, "is empty", "give a file with at least one segment")
    return text


def _bytes_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or "unknown reason"
    raise _error(path, f"cannot be read ({reason})", "check the path and its permissions")


def _decoded(path: Path, data: bytes) -> str:
    """Return the text; the fault is raised outside the handler, since its context holds speech."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
    raise _error(path, f"line {line} is not UTF-8", "save the file as UTF-8")


def _format_of(path: Path, text: str) -> str:
    """Return `json`, `vtt` or `srt`: content decides, the suffix helps out."""
    opening = text.lstrip()[:6]
    if opening.startswith("WEBVTT"):
        return "vtt"
    if opening[0] in "{[" or path.suffix.lower() == ".json":
        return "json"
    if "-->" in text:
        return "vtt" if path.suffix.lower() == ".vtt" else "srt"
    raise _error(path, "is in an unknown format", "give our JSON, WebVTT (.vtt) or SubRip (.srt)")


def _from_json(path: Path, text: str) -> Transcript:
    value = _parsed(path, text)
    if not isinstance(value, dict) or not isinstance(value.get("segments"), list):
        raise _error(path, "has no list of segments", 'write {"segments": [{"text": ...}]}')
    if not value["segments"]:
        raise _error(path, "its list of segments is empty", "give at least one segment")
    name = _text_field(value, "id", path.stem, _at(path, "the transcript"))
    language = _text_field(value, "language", "en", _at(path, "the transcript"))
    return Transcript(safe_id(name), language, tuple(_json_segments(path, value["segments"])))


def _parsed(path: Path, text: str) -> object:
    """Return the JSON value; the fault is raised outside the handler, as in `_decoded`."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno} is not JSON"
    except (ValueError, RecursionError):
        problem = "is not JSON that can be read"
    raise _error(path, problem, "write the file with a JSON library")


def _json_segments(path: Path, values: Iterable[object]) -> Iterator[Segment]:
    seen: set[str] = set()
    clock = 0.0
    for index, value in enumerate(values, 1):
        fail = _at(path, f"segment {index}")
        if not isinstance(value, dict):
            raise fail("is not an object", 'write {"text": ...}')
        segment = _json_segment(value, index, clock, fail)
        if segment.id in seen:
            raise fail("has an id that was used before", "give each segment its own id")
        seen.add(segment.id)
        clock = segment.end
        yield segment


_Fail = Callable[[str, str], TranscriptError]


def _at(path: Path, place: str) -> _Fail:
    return lambda problem, remedy: _error(path, f"{place} {problem}", remedy)


def _json_segment(value: Mapping[str, Any], index: int, clock: float, fail: _Fail) -> Segment:
    if not isinstance(value.get("text"), str):
        raise fail("has no text", 'give "text" as a string')
    start = _seconds(value, "start", clock, fail)
    end = _seconds(value, "end", max(start, clock), fail)
    if end < start:
        raise fail("ends before it starts", "correct its start and end")
    return Segment(
        id=_text_field(value, "id", f"s{index:06d}", fail),
        speaker=_text_field(value, "speaker", NOBODY, fail),
        start=start,
        end=end,
        text=_valid(value["text"]),
    )


def _seconds(value: Mapping[str, Any], key: str, default: float, fail: _Fail) -> float:
    found = value.get(key)
    if found is None:
        return default
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise fail(f'has a "{key}" that is not a number', "give seconds")
    if not 0 <= found <= _LONGEST_SECONDS or math.isnan(found):
        raise fail(f'has a "{key}" out of range', f"give seconds from 0 to {_LONGEST_SECONDS}")
    return float(found)


_LONGEST_SECONDS = 10_000_000


def _text_field(value: Mapping[str, Any], key: str, default: str, fail: _Fail) -> str:
    found = value.get(key)
    if found is None or found == "":
        return default
    if not isinstance(found, str):
        raise fail(f'has a "{key}" that is not text', "give a string or leave it out")
    return _valid(found)


def _valid(text: str) -> str:
    """Return text without lone surrogates, which JSON can hold and no store can."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _cues(path: Path, text: str, kind: str) -> Iterator[_Cue]:
    """Yield the cues of WebVTT or SubRip: their ids and the blocks of comments are left out."""
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        if lines[index].startswith(_COMMENTS) and kind == "vtt":
            index = _block_end(lines, index + 1)
        elif "-->" in lines[index]:
            start, end = _times(path, lines[index], index + 1, kind)
            last = _block_end(lines, index + 1)
            yield _Cue(index + 1, start, end, "\n".join(lines[index + 1 : last]))
            index = last
        else:
            index += 1


def _block_end(lines: Sequence[str], index: int) -> int:
    while index < len(lines) and lines[index].strip():
        index += 1
    return index


def _times(path: Path, line: str, number: int, kind: str) -> tuple[float, float]:
    fail = _at(path, f"line {number}")
    events = pysubs2.SSAFile.from_string(line, format_=kind).events
    if _NEGATIVE.search(line.split("-->", 1)[0]) or _NEGATIVE.search(line.partition("-->")[2][:14]):
        raise fail("has a negative time", "count from the start of the conversation")
    if len(events) != 1:
        raise fail("has times that cannot be read", "write 00:01:02.500 --> 00:01:04.000")
    if events[0].end < events[0].start:
        raise fail("ends before it starts", "correct its times")
    return events[0].start / 1000, events[0].end / 1000


def _from_cues(cues: list[_Cue]) -> Iterator[Segment]:
    prefixes = _speaker_prefixes(cues)
    index = 0
    for cue in cues:
        for speaker, text in _voices(cue.text, prefixes):
            index += 1
            yield Segment(f"s{index:06d}", speaker, cue.start, cue.end, text)


def _speaker_prefixes(cues: Sequence[_Cue]) -> frozenset[str]:
    """Return what stands before a colon as a name: twice at least, or in every cue."""
    heads = [_prefix_of(cue.text.split("\n", 1)[0]) for cue in cues if cue.text.strip()]
    counts = Counter(_prefix_of(line) for cue in cues for line in cue.text.split("\n"))
    everywhere = all(heads)
    return frozenset(name for name, count in counts.items() if name and (count > 1 or everywhere))


def _prefix_of(line: str) -> str:
    match = _NAMED.match(line)
    return match[1] if match and _NAME.match(match[1]) else ""


def _voices(text: str, prefixes: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield speaker and words of a cue: by voice tags, else by a name and colon on a line."""
    speaker = NOBODY
    pieces = _VOICE.split(text)
    for position, piece in enumerate(pieces):
        if position % 2:
            speaker = _plain(piece) or NOBODY
        elif speaker is not NOBODY or position:
            yield from ((speaker, words) for words in [_plain(piece)] if words)
        else:
            yield from _by_prefix(piece, prefixes)


def _by_prefix(text: str, prefixes: frozenset[str]) -> Iterator[tuple[str, str]]:
    speaker, words = NOBODY, ""
    for line in text.split("\n"):
        named = _NAMED.match(line)
        if named and named[1] in prefixes:
            if words:
                yield speaker, words
            speaker, words = _plain(named[1]), ""
            line = line[named.end() :]
        words = f"{words} {_plain(line)}".strip()
    if words:
        yield speaker, words


def _plain(text: str) -> str:
    return " ".join(html.unescape(_TAG.sub("", text)).split())
