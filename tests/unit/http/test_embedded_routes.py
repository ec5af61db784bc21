"""The routes of a single machine: a transcript goes in, a record comes out."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from desk import CANARY, desk, says

from listen_finalization.domain.identity import job_id

SEGMENTS = "/v1/conversations/c1/segments"
SEGMENT = {"id": "s1", "speaker": "Ada", "start": 0, "end": 1.5, "text": "Hello there."}


async def test_segments_go_in_and_an_equal_repeat_keeps_the_version(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        first = await client.put(SEGMENTS, json={"segments": [SEGMENT], "language": "de"})
        again = await client.put(SEGMENTS, json={"segments": [SEGMENT]})
        assert first.status_code == 200
        assert first.json() == again.json() == {"content_version": 1}
        changed = {**SEGMENT, "text": "Hello again."}
        assert (await client.put(SEGMENTS, json={"segments": [changed]})).json() == {
            "content_version": 2
        }
        content = await made.conversations.content("ada", "c1")
        assert content is not None and content.language == "de"
        assert [segment.text for segment in content.segments] == ["Hello again."]


async def test_the_record_is_read_by_its_owner_alone(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await made.spoken()
        read = await client.get("/v1/conversations/c1")
        assert read.json() == {
            "conversation": {"id": "c1", "status": "in_progress", "discarded": False},
            "structured": None,
            "memories": [],
        }
        stranger = await client.get("/v1/conversations/c1", headers=made.token("grace"))
        unknown = await client.get("/v1/conversations/c2")
        assert says(stranger, 404, "conversation-not-found") == unknown.json()


async def test_a_deleted_conversation_is_gone_for_every_route(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await made.spoken()
        deleted = await client.delete("/v1/conversations/c1")
        assert (deleted.status_code, deleted.content) == (204, b"")
        says(await client.delete("/v1/conversations/c1"), 404, "conversation-not-found")
        says(await client.get("/v1/conversations/c1"), 404, "conversation-not-found")
        says(await client.post("/v1/conversations/c1/finalize"), 404, "conversation-not-found")
        closed = await client.put(SEGMENTS, json={"segments": [SEGMENT]})
        says(closed, 409, "conversation-closed")


async def test_a_discarded_conversation_takes_no_more_segments(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await made.spoken()
        with contextlib.closing(sqlite3.connect(tmp_path / "listen.db")) as connection:
            connection.execute("UPDATE conversations SET discarded = 1")
            connection.commit()
        closed = await client.put(SEGMENTS, json={"segments": [SEGMENT]})
        says(closed, 409, "conversation-closed")
        says(await client.post("/v1/conversations/c1/finalize"), 409, "conversation-discarded")


def bent(**changes: Any) -> dict[str, Any]:
    return {"segments": [{**SEGMENT, **changes}]}


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({}, "segments", "missing"),
        ({"segments": []}, "segments", "too_short"),
        ({"segments": [{}]}, "segments.0.id", "missing"),
        (bent(id=""), "segments.0.id", "too_short"),
        (bent(id=1), "segments.0.id", "wrong_type"),
        (bent(text=None), "segments.0.text", "wrong_type"),
        (bent(text="x" * 20_001), "segments.0.text", "too_long"),
        (bent(text="\ud800"), "segments.0.text", "invalid"),
        (bent(start="0"), "segments.0.start", "wrong_type"),
        (bent(start=True), "segments.0.start", "wrong_type"),
        (bent(end=-1), "segments.0.end", "out_of_range"),
        (bent(end=1e300), "segments.0.end", "out_of_range"),
        (bent(**{CANARY: 1}), "segments.0", "unknown_field"),
        ({"segments": [SEGMENT], "language": CANARY}, "language", "invalid"),
        ({"segments": [SEGMENT] * 5_001}, "segments", "too_long"),
    ],
)
async def test_bad_segments_are_422_and_named(
    tmp_path: Path, body: Any, field: str, code: str
) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        headers = {"Content-Type": "application/json"}
        answer = await client.put(SEGMENTS, content=json.dumps(body), headers=headers)
        told = says(answer, 422, "invalid-request")
        assert {"field": field, "code": code} in told["fields"]
        assert len(told["fields"]) <= 10
        assert await made.conversations.find("ada", "c1") is None


async def test_numbers_beyond_a_float_are_422(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        text = json.dumps(bent()).replace("1.5", "1e999")
        headers = {"Content-Type": "application/json"}
        answer = await client.put(SEGMENTS, content=text, headers=headers)
        says(answer, 422, "invalid-request")


async def test_an_id_that_names_no_document_is_422(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        path = "/v1/conversations/__x__/segments"
        told = says(await client.put(path, json={"segments": [SEGMENT]}), 422, "invalid-request")
        assert told["fields"] == [{"field": "conversation_id", "code": "invalid"}]


async def test_the_largest_transcript_fits_and_the_next_byte_does_not(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        many = [{**SEGMENT, "id": f"s{n}", "text": "x" * 1_500} for n in range(5_000)]
        assert (await client.put(SEGMENTS, json={"segments": many})).status_code == 200
        headers = {"Content-Type": "application/json"}
        large = await client.put(SEGMENTS, content=b" " * (8 * 1024 * 1024 + 1), headers=headers)
        says(large, 413, "body-too-large")


async def test_an_empty_body_is_422(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        says(await client.put(SEGMENTS), 422, "invalid-request")


async def test_what_goes_in_can_be_finalized(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await client.put(SEGMENTS, json={"segments": [SEGMENT]})
        answer = await client.post("/v1/conversations/c1/finalize")
        assert answer.json()["job_id"] == job_id("ada", "c1", 1)
