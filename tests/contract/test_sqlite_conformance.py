"""The embedded store passes the public conformance suite."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from listen_finalization.outbox.conformance import CASES

from .sqlite_subject import SqliteSubject, memory_directory


@pytest.fixture
def subject() -> Iterator[SqliteSubject]:
    with tempfile.TemporaryDirectory(dir=memory_directory()) as home:
        made = SqliteSubject(Path(home) / "store.db")
        yield made
        made.close()


@pytest.mark.parametrize("name", CASES)
async def test_embedded_store(name: str, subject: SqliteSubject) -> None:
    await CASES[name](subject)
