"""Stores of these tests: an engine whose statements can be made to fail, and a few operations."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from listen_finalization.domain.commands import Admit, Command
from listen_finalization.domain.content import Segment
from listen_finalization.domain.job import Instant
from listen_finalization.domain.policy import Policy
from listen_finalization.outbox.engine import SqliteEngine
from listen_finalization.outbox.operations import Append, Operation
from listen_finalization.outbox.writer import Writer

START = 1_700_000_000_000_000
Fault = Callable[[str], int | None]
"""Says with which SQLite code a statement fails; None where it does not."""


class FaultyConnection(sqlite3.Connection):
    """A real connection whose statements can be made to fail as SQLite would fail them."""

    fault: Fault = staticmethod(lambda _: None)
    ends_transaction = True
    statements: list[str]

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        code = self.fault(sql)
        if code is None:
            return super().execute(sql, parameters)
        if self.ends_transaction and self.in_transaction:
            super().execute("ROLLBACK")
        raise sqlite_error(code)


def sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("injected")
    error.sqlite_errorcode = code
    return error


def faulty_engine(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[SqliteEngine, FaultyConnection]:
    """Open an engine on a connection that can be made to fail."""
    real = sqlite3.connect

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:
        return real(*args, factory=FaultyConnection, **options)

    monkeypatch.setattr(sqlite3, "connect", connect)
    made = engine(path)
    monkeypatch.setattr(sqlite3, "connect", real)
    assert isinstance(made.connection, FaultyConnection)
    return made, made.connection


def engine(path: Path) -> SqliteEngine:
    return SqliteEngine(path, Policy(), clock=lambda: Instant(START))


def append(name: str, text: str = "words", number: int = 1) -> Append:
    return Append("user", name, (Segment(f"s{number}", "a", 0.0, 1.0, text),))


def admit(name: str) -> Command:
    return Admit("user", name)


def names_on_disk(path: Path) -> set[str]:
    """Return the conversations that another process would find."""
    with sqlite3.connect(path) as connection:
        return {name for (name,) in connection.execute("SELECT conversation_id FROM segments")}


def whole(path: Path) -> bool:
    with sqlite3.connect(path) as connection:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))


def commits(connection: sqlite3.Connection) -> list[str]:
    """Return a list that grows by every COMMIT of the connection from now on."""
    seen: list[str] = []
    connection.set_trace_callback(lambda sql: seen.append(sql) if sql == "COMMIT" else None)
    return seen


def fails(text: str, code: int, *, times: int = 1_000_000) -> Fault:
    """Let the next `times` statements that begin with `text` fail."""
    left = [times]

    def fault(sql: str) -> int | None:
        if not sql.startswith(text) or left[0] == 0:
            return None
        left[0] -= 1
        return code

    return fault


async def submitted(writer: Writer, operations: Sequence[Operation]) -> list[Any]:
    """Submit all at once and return answers and errors."""
    waiting = (writer.submit(operation) for operation in operations)
    return await asyncio.gather(*waiting, return_exceptions=True)
