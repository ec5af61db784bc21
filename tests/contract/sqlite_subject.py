"""The embedded store as a subject of the conformance suite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from listen_finalization.domain.job import Instant
from listen_finalization.outbox.conformance import POLICY
from listen_finalization.outbox.sqlite import SqliteStore
from listen_finalization.ports import Conversations, Outbox, Records

START = 1_700_000_000_000_000


def memory_directory() -> str | None:
    """Name a file system without a disk, where there is one: thousands of stores are made."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


class SqliteSubject:
    """A store in a file of its own, under a clock that only `advance` moves."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._now = START
        self._open()

    def _open(self) -> None:
        self._store = SqliteStore(self._path, POLICY, clock=lambda: Instant(self._now))

    @property
    def outbox(self) -> Outbox:
        return self._store.outbox

    @property
    def conversations(self) -> Conversations:
        return self._store.conversations

    @property
    def records(self) -> Records:
        return self._store.records

    def advance(self, micros: int) -> None:
        self._now += micros

    async def restart(self) -> None:
        self._store.close()
        self._open()

    def close(self) -> None:
        self._store.close()

    async def set_job(self, job_id: str, fields: Mapping[str, Any]) -> None:
        table = "conversation_finalization_jobs"
        self._set(table, fields, {"job_id": job_id})

    async def set_conversation(
        self, uid: str, conversation_id: str, fields: Mapping[str, Any]
    ) -> None:
        self._set("conversations", fields, {"uid": uid, "conversation_id": conversation_id})

    async def conversation_fields(self, uid: str, conversation_id: str) -> Mapping[str, Any]:
        place = (uid, conversation_id)
        with sqlite3.connect(self._path) as connection:
            connection.row_factory = sqlite3.Row
            query = "SELECT * FROM conversations WHERE uid = ? AND conversation_id = ?"
            found = dict(connection.execute(query, place).fetchone())
        return found | {"extra": json.loads(found["extra"])}

    async def remove_conversation(self, uid: str, conversation_id: str) -> None:
        for table in ("conversations", "segments"):
            self._run(
                f"DELETE FROM {table} WHERE uid = ? AND conversation_id = ?",
                (uid, conversation_id),
            )

    async def job_count(self) -> int:
        with sqlite3.connect(self._path) as connection:
            query = "SELECT count(*) FROM conversation_finalization_jobs"
            return int(connection.execute(query).fetchone()[0])

    def _set(self, table: str, fields: Mapping[str, Any], key: Mapping[str, Any]) -> None:
        columns = ", ".join(f"{name} = ?" for name in fields)
        where = " AND ".join(f"{name} = ?" for name in key)
        values = [json.dumps(v) if isinstance(v, dict) else v for v in fields.values()]
        self._run(f"UPDATE {table} SET {columns} WHERE {where}", (*values, *key.values()))

    def _run(self, statement: str, values: tuple[Any, ...]) -> None:
        with sqlite3.connect(self._path) as connection:
            assert connection.execute(statement, values).rowcount >= 1
