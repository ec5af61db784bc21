"""Rows with structured text that is no JSON: told by name, and in nobody's way."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from listen_finalization.errors import RowUnreadableError
from listen_finalization.finalizer import ResultKind
from listen_finalization.ports import Records
from listen_finalization.processing.destinations import KIND
from listen_finalization.testing.workshop import Workshop

URL = "https://receiver.example/hook"
DAMAGES = ["{", '{"a": 1}}', "no json", pytest.param("[" * 100_000, id="deep")]


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncIterator[Workshop]:
    async with Workshop(tmp_path) as made:
        yield made


@pytest.fixture
def records(workshop: Workshop) -> Records:
    held: Records = workshop.store.records
    return held


def change(workshop: Workshop, statement: str, *values: str) -> None:
    """Change rows as a hand or another program would."""
    path = workshop.directory / "listen.db"
    with contextlib.closing(sqlite3.connect(path, timeout=10)) as other:
        assert other.execute(statement, values).rowcount == 1
        other.commit()


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_record_is_left_out_of_a_list_and_told_to_who_asks_for_it(
    damage: str, workshop: Workshop, records: Records
) -> None:
    for key in ("a", "b", "c"):
        await records.put_if("flag", key, {"of": key}, version=0)
    change(workshop, "UPDATE records SET value = ? WHERE key = 'b'", damage)
    assert [row.value for row in await records.list("flag")] == [{"of": "a"}, {"of": "c"}]
    with pytest.raises(RowUnreadableError) as told:
        await records.get("flag", "b")
    assert damage not in str(told.value)
    assert not workshop.store.broken


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_destination_keeps_no_other_from_its_delivery(
    damage: str, workshop: Workshop
) -> None:
    for name in ("a", "b", "c"):
        await workshop.destinations.add("ada", name, URL)
    change(workshop, "UPDATE records SET value = ? WHERE key = 'ada/b'", damage)
    assert [found.id for found in await workshop.destinations.of("ada")] == ["a", "c"]
    job = await workshop.admitted()
    assert (await workshop.run(job)).kind is ResultKind.COMPLETED
    assert sorted(sent.destination.id for sent in workshop.sender.sent) == ["a", "c"]
    assert await workshop.destinations.remove("ada", "b")
    assert await workshop.store.records.get(KIND, "ada/b") is None


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_calendar_context_makes_the_content_unreadable_and_fails_its_job_alone(
    damage: str, workshop: Workshop
) -> None:
    job = await workshop.admitted()
    change(workshop, "UPDATE conversations SET calendar_meeting_context = ?", damage)
    with pytest.raises(RowUnreadableError):
        await workshop.conversations.content("ada", "c1")
    assert (await workshop.run(job)).kind is ResultKind.FAILED
    assert (await workshop.job(job)).failure_code == "content_unreadable"


@pytest.mark.parametrize("damage", ["5", "null", ""])
async def test_a_memory_whose_sources_are_no_list_is_unreadable(
    damage: str, workshop: Workshop
) -> None:
    await workshop.run(await workshop.admitted())
    change(workshop, "UPDATE memories SET segment_ids = ?", damage)
    with pytest.raises(RowUnreadableError):
        await workshop.conversations.find("ada", "c1")


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE conversations SET structured = ?",
        "UPDATE memories SET segment_ids = ?",
    ],
)
async def test_a_damaged_record_of_a_conversation_is_unreadable(
    statement: str, damage: str, workshop: Workshop
) -> None:
    await workshop.run(await workshop.admitted())
    assert (await workshop.record()).memories
    change(workshop, statement, damage)
    with pytest.raises(RowUnreadableError):
        await workshop.conversations.find("ada", "c1")
    assert not workshop.store.broken
