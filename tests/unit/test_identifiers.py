"""Identifiers that could name another document are refused by every entrance of the library."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from listen_finalization.domain.codes import RefusalCode
from listen_finalization.domain.commands import Admit
from listen_finalization.domain.content import Segment
from listen_finalization.domain.decision import Refused
from listen_finalization.errors import ValueRefusedError
from listen_finalization.processing.destinations import KIND
from listen_finalization.testing.workshop import Workshop

SAID = Segment("s", "Ada", 0.0, 1.0, "words")
URL = "https://receiver.example/hook"
FAULTY = ["", ".", "..", "a/b", "a\\b", "__all__", "a\nb", "a\x7f", "x" * 129, "é" * 65]
LONE = "\ud800"
"""A lone surrogate, which no store takes: it cannot even be asked for."""

faulty = pytest.mark.parametrize("name", FAULTY)
either = pytest.mark.parametrize("column", ["uid", "conversation_id"])


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncIterator[Workshop]:
    async with Workshop(tmp_path) as made:
        yield made


def place(column: str, name: str) -> tuple[str, str]:
    return (name, "c1") if column == "uid" else ("ada", name)


def query(workshop: Workshop, statement: str, *values: str) -> list[tuple[object, ...]]:
    path = workshop.directory / "listen.db"
    with contextlib.closing(sqlite3.connect(path, timeout=10)) as other:
        found = other.execute(statement, values).fetchall()
        other.commit()
    return found


@either
@faulty
async def test_no_conversation_of_such_a_name_is_admitted_even_where_one_is_stored(
    name: str, column: str, workshop: Workshop
) -> None:
    await workshop.spoken()
    query(workshop, f"UPDATE conversations SET {column} = ?", name)
    answer = await workshop.admission.admit(Admit(*place(column, name)))
    assert answer == Refused(RefusalCode.CONVERSATION_NOT_FOUND)
    assert query(workshop, "SELECT * FROM conversation_finalization_jobs") == []
    assert workshop.dispatcher.handed == []


@either
@pytest.mark.parametrize("name", [*FAULTY, LONE])
async def test_nothing_is_appended_under_such_a_name(
    name: str, column: str, workshop: Workshop
) -> None:
    with pytest.raises(ValueRefusedError) as told:
        await workshop.conversations.append(*place(column, name), [SAID])
    assert not name.strip(".") or name not in str(told.value)
    for table in ("conversations", "segments"):
        assert query(workshop, f"SELECT * FROM {table}") == []


@pytest.mark.parametrize("name", [*FAULTY, LONE, "ada/b"])
async def test_no_destination_is_stored_for_such_a_user(name: str, workshop: Workshop) -> None:
    with pytest.raises(ValueRefusedError):
        await workshop.destinations.add(name, "d0", URL)
    assert await workshop.store.records.list(KIND) == ()
    assert await workshop.destinations.of("ada") == ()
