"""The optional state file: what the queue accepted survives the end of its process.

A killed process loses nothing that was answered; a machine that loses power may lose the last
moments. Attempts that were under way are made again.
"""

from __future__ import annotations

import json
import sqlite3
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from listen_finalization.domain.job import Instant
from listen_finalization.errors import ListenFinalizationError
from listen_finalization.testing.cloud_tasks.engine import Kept
from listen_finalization.testing.cloud_tasks.values import (
    Attempt,
    Ending,
    Queue,
    QueueState,
    RateLimits,
    RetryConfig,
    Target,
    Task,
)

_TABLE = "CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT"


class StateFileError(ListenFinalizationError):
    """The state file cannot be used: it is in use, damaged, or not one of this version."""


class Journal:
    """Every change of an engine, committed by `flush` before the change is answered."""

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises `StateFileError`; one process at a time holds it."""
        self._changes: dict[str, Kept] = {}
        try:
            self._db = sqlite3.connect(path, isolation_level=None, timeout=0)
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(_TABLE)
        except sqlite3.Error as error:
            raise StateFileError from error

    def record(self, name: str, kept: Kept) -> None:
        """Note what a name now stands for."""
        self._changes[name] = kept

    def flush(self) -> None:
        """Commit what was noted. Raises `StateFileError`; what was noted then stays noted."""
        if not self._changes:
            return
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                for name, kept in self._changes.items():
                    self._write(name, kept)
        except sqlite3.Error as error:
            raise StateFileError from error
        self._changes = {}

    def kept(self) -> Iterator[tuple[str, Kept]]:
        """Return what is in the file, queues before tasks. Raises `StateFileError`."""
        try:
            rows = self._db.execute("SELECT name, value FROM kept ORDER BY rowid").fetchall()
            found = [(name, _decoded(name, json.loads(value))) for name, value in rows]
        except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
            raise StateFileError from error
        yield from sorted(found, key=lambda one: not isinstance(one[1], Queue))

    def close(self) -> None:
        """Close the file; what was noted and not flushed is dropped."""
        self._db.close()

    def _write(self, name: str, kept: Kept) -> None:
        if kept is None:
            self._db.execute("DELETE FROM kept WHERE name = ?", (name,))
        else:
            self._db.execute("REPLACE INTO kept VALUES (?, ?)", (name, _encoded(kept)))


def _encoded(kept: Queue | Task | int) -> str:
    if isinstance(kept, int):
        return json.dumps({"until": kept})
    value = asdict(kept)
    if isinstance(kept, Task):
        value["target"]["body"] = b64encode(kept.target.body).decode()
    return json.dumps(value)


def _decoded(name: str, value: dict[str, Any]) -> Kept:
    if "until" in value:
        return Instant(value["until"])
    if "/tasks/" not in name:
        return _queue(value)
    target = value["target"]
    target["body"] = b64decode(target["body"])
    target["headers"] = tuple((header, text) for header, text in target["headers"])
    attempts = {key: _attempt(value[key]) for key in ("first", "last")}
    retry = None if value["retry"] is None else RetryConfig(**value["retry"])
    return Task(**{**value, **attempts, "target": Target(**target), "retry": retry})


def _queue(value: dict[str, Any]) -> Queue:
    rates, retry = RateLimits(**value["rates"]), RetryConfig(**value["retry"])
    return Queue(**{**value, "rates": rates, "retry": retry, "state": QueueState(value["state"])})


def _attempt(value: dict[str, Any] | None) -> Attempt | None:
    if value is None:
        return None
    ending = None if value["ending"] is None else Ending(value["ending"])
    return Attempt(**{**value, "ending": ending})
