"""The reads of the embedded store, as functions of a connection inside one snapshot."""

from __future__ import annotations

import heapq
import json
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

from listen_finalization.domain.codes import Status, Step
from listen_finalization.domain.content import Content, Memory, Segment
from listen_finalization.domain.job import SCHEMA_VERSION, Instant, Job
from listen_finalization.outbox.codec import CONVERSATION_COLUMNS, decode_conversation, decode_job
from listen_finalization.outbox.statements import STATEMENTS
from listen_finalization.ports import DuePage, DueRow, JobPage, Record, Row

_END = (2**62, "")


def job(connection: sqlite3.Connection, job_id: str) -> Job | None:
    row = connection.execute(STATEMENTS["read_job"], (job_id,)).fetchone()
    return None if row is None else decode_job(row)


def _due_row(row: tuple[Any, ...]) -> DueRow:
    job_id, generation, status, byok, handovers, due, claim_id = row
    return DueRow(job_id, generation, Status(status), bool(byok), handovers, due, claim_id)


def due_page(connection: sqlite3.Connection, now: Instant, limit: int) -> DuePage:
    """Return due rows and the time of the next; one of an unknown status is only counted."""
    found = connection.execute(STATEMENTS["due_page"], (now, limit)).fetchall()
    (next_due,) = connection.execute(STATEMENTS["next_due"], (now,)).fetchone()
    rows = tuple(_due_row(row) for row in found if row[2] in _STATUSES)
    return DuePage(rows, now, next_due, undecodable=len(found) - len(rows))


_STATUSES = frozenset(Status)


def leases(connection: sqlite3.Connection, limit: int) -> tuple[DueRow, ...]:
    found = connection.execute(STATEMENTS["leases"], (limit,)).fetchall()
    return tuple(_due_row(row) for row in found)


def counts(connection: sqlite3.Connection) -> Mapping[Status, int]:
    found = dict(connection.execute(STATEMENTS["counts"]).fetchall())
    return {s: found.get(s.value, 0) for s in Status if s is not Status.COMPLETED}


def oldest(connection: sqlite3.Connection) -> Mapping[Status, Instant]:
    found = connection.execute(STATEMENTS["oldest"]).fetchall()
    return {Status(status): Instant(created) for status, created in found}


def job_page(
    connection: sqlite3.Connection, status: Status | None, limit: int, cursor: str | None
) -> JobPage:
    """Merge the statuses' own orders, newest first; the cursor is the last job's place.

    Raises `ValueError` for a cursor that no page gave out.
    """
    place = _END if cursor is None else _place(cursor)
    parts = [
        _by_status(connection, one, place, limit + 1)
        for one in ([status] if status is not None else list(Status))
    ]
    merged = heapq.merge(*parts, key=lambda row: (row[8], row[0]), reverse=True)
    rows = [row for row, _ in zip(merged, range(limit + 1), strict=False)]
    jobs = tuple(decode_job(row) for row in rows[:limit] if row[1] <= SCHEMA_VERSION)
    more = f"{rows[limit - 1][8]}.{rows[limit - 1][0]}" if len(rows) > limit else None
    return JobPage(jobs, more)


def _place(cursor: str) -> tuple[int, str]:
    created, _, job_id = cursor.partition(".")
    return int(created), job_id


def _by_status(
    connection: sqlite3.Connection, status: Status, place: tuple[int, str], limit: int
) -> Iterator[tuple[Any, ...]]:
    return iter(connection.execute(STATEMENTS["list_jobs"], (status, *place, limit)).fetchall())


def record(connection: sqlite3.Connection, uid: str, conversation_id: str) -> Record | None:
    place = (uid, conversation_id)
    row = connection.execute(STATEMENTS["read_record"], place).fetchone()
    if row is None:
        return None
    found = connection.execute(STATEMENTS["read_memories"], place).fetchall()
    memories = tuple(Memory(text, tuple(json.loads(sources))) for text, sources in found)
    structured = row[CONVERSATION_COLUMNS]
    return Record(
        decode_conversation(row), json.loads(structured) if structured else None, memories
    )


def content(connection: sqlite3.Connection, uid: str, conversation_id: str) -> Content | None:
    place = (uid, conversation_id)
    row = connection.execute(STATEMENTS["read_content"], place).fetchone()
    if row is None:
        return None
    version, language, photos, byok, context = row
    segments = tuple(
        Segment(*found) for found in connection.execute(STATEMENTS["read_segments"], place)
    )
    calendar = json.loads(context) if context else None
    return Content(segments, version, language, photos, bool(byok), calendar)


def results(connection: sqlite3.Connection, job_id: str) -> Mapping[tuple[Step, int], str]:
    found = connection.execute(STATEMENTS["read_results"], (job_id,)).fetchall()
    return {(Step(step), chunk): payload for step, chunk, payload in found}


def row_of(connection: sqlite3.Connection, kind: str, key: str) -> Row | None:
    found = connection.execute(STATEMENTS["get_row"], (kind, key)).fetchone()
    return None if found is None else Row(key, json.loads(found[0]), found[1])


def rows_of(connection: sqlite3.Connection, kind: str, prefix: str, limit: int) -> tuple[Row, ...]:
    bounds = (kind, prefix, prefix + "\U0010ffff", limit)
    found = connection.execute(STATEMENTS["list_rows"], bounds).fetchall()
    return tuple(Row(key, json.loads(value), version) for key, value, version in found)
