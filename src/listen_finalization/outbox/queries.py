"""The reads of the embedded store, as functions of a connection inside one snapshot."""

from __future__ import annotations

import heapq
import itertools
import json
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

from listen_finalization.domain.codes import Status, Step
from listen_finalization.domain.content import Content, Memory, Segment
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.job import Instant, Job
from listen_finalization.errors import RowUnreadableError
from listen_finalization.outbox.codec import CONVERSATION_COLUMNS, decode_conversation, decode_job
from listen_finalization.outbox.paging import (
    MOST_LISTED,
    cursor_behind,
    place_of,
    refuse_limit,
)
from listen_finalization.outbox.statements import STATEMENTS
from listen_finalization.ports import DuePage, DueRow, JobPage, Record, Row

_END = (2**62, "")


def job(connection: sqlite3.Connection, job_id: str) -> Job | None:
    row = connection.execute(STATEMENTS["read_job"], (job_id,)).fetchone()
    return None if row is None else decode_job(row)


def standing(
    connection: sqlite3.Connection, uid: str, conversation_id: str
) -> tuple[Conversation, Job | None] | None:
    """Return a conversation with the job that it names, where that job is of this conversation."""
    place = (uid, conversation_id)
    row = connection.execute(STATEMENTS["read_conversation_and_job"], place).fetchone()
    if row is None:
        return None
    conversation = decode_conversation(row)
    found = row[CONVERSATION_COLUMNS:]
    named = decode_job(found) if found[0] is not None else None
    return conversation, named if named is not None and conversation.names(named) else None


def _due_row(row: tuple[Any, ...]) -> DueRow:
    job_id, generation, status, byok, handovers, due, claim_id = row
    known = Status(status) if status in _STATUSES else None
    return DueRow(job_id, generation, known, bool(byok), handovers, due, claim_id)


def due_page(
    connection: sqlite3.Connection, now: Instant, limit: int, after: DueRow | None
) -> DuePage:
    """Return due rows from behind `after`, and when the next that is not due yet will be."""
    refuse_limit(limit)
    place = (after.due, after.job_id) if after is not None else (0, "")
    found = connection.execute(STATEMENTS["due_page"], (now, *place, limit)).fetchall()
    (next_due,) = connection.execute(STATEMENTS["next_due"], (now,)).fetchone()
    return DuePage(tuple(map(_due_row, found)), now, next_due)


_STATUSES = frozenset(Status)


def leases(connection: sqlite3.Connection, limit: int) -> tuple[DueRow, ...]:
    refuse_limit(limit)
    found = connection.execute(STATEMENTS["leases"], (limit,)).fetchall()
    return tuple(_due_row(row) for row in found)


def counts(connection: sqlite3.Connection) -> Mapping[Status, int]:
    found = dict(connection.execute(STATEMENTS["counts"]).fetchall())
    return {s: found.get(s.value, 0) for s in Status if s is not Status.COMPLETED}


def oldest(connection: sqlite3.Connection) -> Mapping[Status, Instant]:
    found = connection.execute(STATEMENTS["oldest"]).fetchall()
    return {Status(s): Instant(created) for s, created in found if created is not None}


def job_page(
    connection: sqlite3.Connection, status: Status | None, limit: int, cursor: str | None
) -> JobPage:
    """Merge the statuses' own orders, newest first; the cursor is the last job's place.

    A row that cannot be decoded is named by its id alone. Raises `ValueRefusedError` for a cursor
    that no page gave out.
    """
    refuse_limit(limit, MOST_LISTED)
    place = _END if cursor is None else place_of(cursor)
    parts = [
        _by_status(connection, one, place, limit + 1)
        for one in ([status] if status is not None else list(Status))
    ]
    merged = heapq.merge(*parts, key=lambda row: (row[8], row[0]), reverse=True)
    rows = list(itertools.islice(merged, limit + 1))
    read = [_readable(row) for row in rows[:limit]]
    jobs = tuple(job for job in read if isinstance(job, Job))
    lost = tuple(job for job in read if isinstance(job, str))
    more = cursor_behind(rows[limit - 1][8], rows[limit - 1][0]) if len(rows) > limit else None
    return JobPage(jobs, more, lost)


def _readable(row: tuple[Any, ...]) -> Job | str:
    """Return the job, or the id of a row that cannot be decoded."""
    try:
        return decode_job(row)
    except RowUnreadableError:
        return str(row[0])


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
    memories = tuple(Memory(text, _strings(sources)) for text, sources in found)
    return Record(decode_conversation(row), _decoded(row[CONVERSATION_COLUMNS]), memories)


def _strings(text: str) -> tuple[str, ...]:
    held = _decoded(text)
    if not isinstance(held, list):
        raise RowUnreadableError
    return tuple(held)


def _decoded(text: str | None) -> Any:
    """Return the value of a structured column. Raises `RowUnreadableError` for a damaged one."""
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError) as error:
        raise RowUnreadableError from error


def content(connection: sqlite3.Connection, uid: str, conversation_id: str) -> Content | None:
    place = (uid, conversation_id)
    row = connection.execute(STATEMENTS["read_content"], place).fetchone()
    if row is None:
        return None
    version, language, photos, byok, context = row
    segments = tuple(
        Segment(*found) for found in connection.execute(STATEMENTS["read_segments"], place)
    )
    return Content(segments, version, language, photos, bool(byok), _decoded(context))


def results(connection: sqlite3.Connection, job_id: str) -> Mapping[tuple[Step, int], str]:
    found = connection.execute(STATEMENTS["read_results"], (job_id,)).fetchall()
    return {(Step(step), chunk): payload for step, chunk, payload in found}


def row_of(connection: sqlite3.Connection, kind: str, key: str) -> Row | None:
    found = connection.execute(STATEMENTS["get_row"], (kind, key)).fetchone()
    return None if found is None else Row(key, _decoded(found[0]), found[1])


def rows_of(connection: sqlite3.Connection, kind: str, prefix: str, limit: int) -> tuple[Row, ...]:
    """Return rows by key; a damaged one is left out, so that it stands in nobody's way."""
    refuse_limit(limit)
    bounds = (kind, prefix, _after(prefix), limit)
    found = connection.execute(STATEMENTS["list_rows"], bounds).fetchall()
    rows = (_row(*line) for line in found)
    return tuple(row for row in rows if row is not None)


def _row(key: str, value: str, version: int) -> Row | None:
    try:
        return Row(key, _decoded(value), version)
    except RowUnreadableError:
        return None


def _after(prefix: str) -> str | bytes:
    """Return the least value beyond every key of the prefix; SQLite sorts any blob after text."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return b""
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if following == 0xD800 else following)
