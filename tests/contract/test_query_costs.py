"""Reads cost the same, to the instruction of SQLite's machine, however much was completed."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from listen_finalization.domain.codes import Status
from listen_finalization.domain.job import Instant
from listen_finalization.outbox import queries
from listen_finalization.outbox.conformance import POLICY
from listen_finalization.outbox.engine import SqliteEngine

from .sqlite_subject import START, memory_directory

FEW = 1_000
CI = 100_000
FULL = 1_000_000
RATIO = 1.05
NOW = Instant(START)

SPREAD = """
INSERT INTO conversation_finalization_jobs
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
SELECT
  printf('%08x-%s', (i * 2654435761) % 4294967296, ?2), 1, 'user', ?2 || i, 1, ?2, 0, 0,
  ?3 + i * 1000, ?3 + i * 1000, ?3, 1, 1, 'claim',
  CASE ?2 WHEN 'leased' THEN ?3 END, CASE ?2 WHEN 'leased' THEN ?3 END, 1, 1, 0, 0, NULL, 0, NULL,
  CASE ?2 WHEN 'completed' THEN 'success' WHEN 'dead_letter' THEN 'failed' END,
  CASE ?2 WHEN 'completed' THEN ?3 END,
  CASE WHEN ?2 IN ('queued', 'leased') THEN ?3 + i * 1000 END, '[]', '[]'
FROM n
"""
OPEN: Mapping[Status, int] = MappingProxyType(
    {Status.QUEUED: 300, Status.LEASED: 20, Status.DEAD_LETTER: 40}
)

READS: Mapping[str, Callable[[sqlite3.Connection], Any]] = MappingProxyType(
    {
        "due": lambda connection: queries.due_page(connection, NOW, 100, None),
        "leases": lambda connection: queries.leases(connection, 100),
        "counts": queries.counts,
        "oldest": queries.oldest,
        "first page": lambda connection: queries.job_page(connection, None, 50, None),
        "queued page": lambda connection: queries.job_page(connection, Status.QUEUED, 50, None),
        "later page": lambda connection: queries.job_page(connection, None, 50, f"{START}.a"),
    }
)


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=memory_directory()) as made:
        yield Path(made)


def _filled(path: Path, completed: int) -> sqlite3.Connection:
    engine = SqliteEngine(path, POLICY)
    connection = engine.connection
    connection.execute("PRAGMA synchronous = OFF")
    for status, count in {**OPEN, Status.COMPLETED: completed}.items():
        begin = START - 1_000 * (count if status is Status.COMPLETED else count // 2)
        connection.execute(SPREAD, (count, status.value, begin))
    return connection


def _instructions(connection: sqlite3.Connection, read: Callable[[sqlite3.Connection], Any]) -> int:
    """Return how many instructions of SQLite's machine the read takes."""
    count = [0]

    def tick() -> int:
        count[0] += 1
        return 0

    read(connection)
    connection.set_progress_handler(tick, 1)
    read(connection)
    connection.set_progress_handler(None, 1)
    return count[0]


def _costs(path: Path, completed: int) -> dict[str, int]:
    connection = _filled(path, completed)
    costs = {name: _instructions(connection, read) for name, read in READS.items()}
    connection.close()
    return costs


def _compare(home: Path, many: int) -> None:
    few, more = _costs(home / "few.db", FEW), _costs(home / "many.db", many)
    ratios = {name: more[name] / few[name] for name in READS}
    assert all(few.values())
    assert max(ratios.values()) <= RATIO, ratios


def test_reads_do_not_cost_more_with_100_times_the_completed_rows(home: Path) -> None:
    _compare(home, CI)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_reads_do_not_cost_more_with_1000_times_the_completed_rows(home: Path) -> None:
    _compare(home, FULL)


def test_filled_rows_are_rows_of_the_product(home: Path) -> None:
    connection = _filled(home / "store.db", 10)
    for status in (Status.COMPLETED, *OPEN):
        assert queries.job_page(connection, status, 5, None).jobs
    assert queries.counts(connection) == {Status.BLOCKED_BYOK: 0, **OPEN}
    connection.close()
