"""Transcript files: each format, names of speakers, and errors that repeat no speech."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listen_finalization.cli import transcripts
from listen_finalization.cli.transcripts import (
    Transcript,
    TranscriptError,
    read_transcript,
    safe_id,
)
from listen_finalization.domain.content import Segment

CANARY = "canary-7f3a"
MEETINGS = Path(__file__).parents[3].parent / "shared" / "data" / "meetings"


def written(directory: Path, name: str, content: str | bytes) -> Path:
    path = directory / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def said(transcript: Transcript) -> list[tuple[str, str]]:
    return [(segment.speaker, segment.text) for segment in transcript.segments]


def test_json_is_read_with_ids_and_times_filled_in(tmp_path: Path) -> None:
    content = {
        "id": "standup",
        "language": "de",
        "segments": [
            {"id": "x", "speaker": "Ana", "start": 1, "end": 2.5, "text": "Hallo."},
            {"text": "Ja."},
        ],
    }
    assert read_transcript(written(tmp_path, "a.json", json.dumps(content))) == Transcript(
        "standup",
        "de",
        (
            Segment("x", "Ana", 1.0, 2.5, "Hallo."),
            Segment("s000002", "Speaker", 2.5, 2.5, "Ja."),
        ),
    )


def test_webvtt_voices_name_the_speakers(tmp_path: Path) -> None:
    content = """WEBVTT - a title

NOTE not spoken
00 --> this is a comment

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.500 align:start position:0%
<v.loud Ana Ruiz>Hello <i>there</i> &amp; welcome,
Ben.</v>

7f-1
01:00:03.000 --> 01:00:04.000
<v Ben>Hi.</v> <v Ana Ruiz>Right.</v>

2
01:00:05.000 --> 01:00:06.000
"""
    transcript = read_transcript(written(tmp_path, "talk.vtt", content))
    assert transcript.segments == (
        Segment("s000001", "Ana Ruiz", 1.0, 2.5, "Hello there & welcome, Ben."),
        Segment("s000002", "Ben", 3603.0, 3604.0, "Hi."),
        Segment("s000003", "Ana Ruiz", 3603.0, 3604.0, "Right."),
    )


def test_subrip_prefixes_name_the_speakers(tmp_path: Path) -> None:
    content = (
        "1\r\n00:00:01,000 --> 00:00:02,000\r\nAna Ruiz: Hello.\r\nBen: Hi.\r\n\r\n"
        "2\r\n00:00:03,000 --> 00:00:04,000\r\nRemember: buy milk.\r\n\r\n"
        "3\r\n00:00:05,000 --> 00:00:06,000\r\nAna Ruiz: I will.\r\n\r\n"
        "4\r\n00:00:07,000 --> 00:00:08,000\r\nBen: Good.\r\n\r\n"
        "5\r\n00:00:09,000 --> 00:00:10,000\r\nBye.\r\n"
    )
    path = written(tmp_path, "talk.srt", b"\xef\xbb\xbf" + content.encode())
    assert said(read_transcript(path)) == [
        ("Ana Ruiz", "Hello."),
        ("Ben", "Hi."),
        ("Speaker", "Remember: buy milk."),
        ("Ana Ruiz", "I will."),
        ("Ben", "Good."),
        ("Speaker", "Bye."),
    ]


def test_content_outranks_the_suffix(tmp_path: Path) -> None:
    vtt = "WEBVTT\n\n00:01.000 --> 00:02.000\nHello.\n"
    assert said(read_transcript(written(tmp_path, "a.txt", vtt))) == [("Speaker", "Hello.")]
    srt = "1\n00:00:01,000 --> 00:00:02,000\nHello.\n"
    assert said(read_transcript(written(tmp_path, "b.txt", srt))) == [("Speaker", "Hello.")]
    text = '\ufeff {"segments": [{"text": "Hello."}]}'
    assert said(read_transcript(written(tmp_path, "c.txt", text))) == [("Speaker", "Hello.")]


def test_lone_surrogate_in_json_is_replaced(tmp_path: Path) -> None:
    path = written(tmp_path, "a.json", '{"segments": [{"text": "a \\ud800 b"}]}')
    assert said(read_transcript(path)) == [("Speaker", "a ? b")]


SPOKEN = f'"text": "{CANARY}"'
SEGMENT_ERRORS: list[tuple[str | bytes, str]] = [
    (f'{{"segments": [{{{SPOKEN}}}, "{CANARY}"]}}', "segment 2 is not an object"),
    (f'{{"segments": [{{"speaker": "{CANARY}"}}]}}', "segment 1 has no text"),
    (
        f'{{"segments": [{{{SPOKEN}, "start": true}}]}}',
        'segment 1 has a "start" that is not a number',
    ),
    (f'{{"segments": [{{{SPOKEN}, "end": "9"}}]}}', 'segment 1 has a "end" that is not a number'),
    (f'{{"segments": [{{{SPOKEN}, "start": -1}}]}}', 'segment 1 has a "start" out of range'),
    (f'{{"segments": [{{{SPOKEN}, "start": NaN}}]}}', 'segment 1 has a "start" out of range'),
    (f'{{"segments": [{{{SPOKEN}, "end": Infinity}}]}}', 'segment 1 has a "end" out of range'),
    (f'{{"segments": [{{{SPOKEN}, "start": 2, "end": 1}}]}}', "segment 1 ends before it starts"),
    (f'{{"segments": [{{{SPOKEN}, "speaker": 1}}]}}', 'segment 1 has a "speaker" that is not text'),
    (
        f'{{"segments": [{{{SPOKEN}, "id": "x"}}, {{{SPOKEN}, "id": "x"}}]}}',
        "segment 2 has an id that was used before",
    ),
]
FILE_ERRORS: list[tuple[str | bytes, str]] = [
    (f'{{"segments": [\n{{"text": "{CANARY}" oops', "line 2 is not JSON"),
    (f'["{CANARY}"]', "has no list of segments"),
    (f'{{"segments": "{CANARY}"}}', "has no list of segments"),
    ('{"segments": []}', "its list of segments is empty"),
    ("[" * 100_000, "is not JSON that can be read"),
    (f"{CANARY}\n", "is in an unknown format"),
    (" \r\n", "is empty"),
    ("", "is empty"),
    (b"WEBVTT\n\n\xff " + CANARY.encode(), "line 3 is not UTF-8"),
    ("WEBVTT\n\n", "no cue holds any text"),
    (f"WEBVTT\n\n00:0x.000 --> 00:02.000\n{CANARY}\n", "line 3 has times that cannot be read"),
    (f"WEBVTT\n\n00:03.000 --> 00:02.000\n{CANARY}\n", "line 3 ends before it starts"),
    (f"WEBVTT\n\n-00:03.000 --> 00:02.000\n{CANARY}\n", "line 3 has a negative time"),
    (f"1\n00:00:03,000 --> -00:00:02,000\n{CANARY}\n", "line 2 has a negative time"),
]


@pytest.mark.parametrize(("content", "problem"), SEGMENT_ERRORS + FILE_ERRORS)
def test_error_names_file_place_and_remedy_and_nothing_that_was_said(
    tmp_path: Path, content: str | bytes, problem: str
) -> None:
    path = written(tmp_path, "bad.txt", content)
    with pytest.raises(TranscriptError) as caught:
        read_transcript(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: {problem}; ")
    assert CANARY not in message
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_missing_file_and_directory_are_told_apart_from_bad_ones(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(TranscriptError, match="cannot be read"):
            read_transcript(path)


def test_file_over_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "MAX_BYTES", 10)
    with pytest.raises(TranscriptError, match="larger than"):
        read_transcript(written(tmp_path, "a.json", '{"segments": []}'))


def test_representation_of_a_transcript_shows_no_speech(tmp_path: Path) -> None:
    path = written(tmp_path, "a.json", f'{{"segments": [{{{SPOKEN}}}]}}')
    assert CANARY not in repr(read_transcript(path))


@given(st.text())
def test_conversation_id_is_always_safe(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,100}", safe_id(name))


def test_odd_names_stay_apart_and_safe_ones_stay_the_same() -> None:
    assert safe_id("stand-up_1") == "stand-up_1"
    odd = ["a b", "a.b", "a/b", "", ".", "..", "é", "a" * 101, "a" * 102]
    assert len({safe_id(name) for name in odd}) == len(odd)


def test_real_meetings_load() -> None:
    paths = sorted(MEETINGS.glob("*.json"))
    if not paths:
        pytest.skip("the shared meetings are not here")
    for path in paths:
        transcript = read_transcript(path)
        assert transcript.conversation_id == path.stem
        assert transcript.segments[0].id == "s000001"
