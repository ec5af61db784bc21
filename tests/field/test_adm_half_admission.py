"""adm-half-admission: an admission is whole or absent, whichever of its writes fails."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from google.api_core.exceptions import PermissionDenied
from google.cloud.firestore_v1.services.firestore.async_client import FirestoreAsyncClient

from listen_finalization.outbox.commands import CommandWriter

from .checks import all_checks, problem
from .ground import FileGround, Ground, ProjectGround
from .house import House, house

PATH = "/v1/conversations/c1/finalize"
BODY = {"calendar_meeting_context": {"title": "A"}}
WRITES = ("insert_job", "update_conversation", "store_context")

_KILLED = """
import asyncio, os, signal, sys
from listen_finalization.domain.commands import Admit
from listen_finalization.domain.policy import Policy
from listen_finalization.outbox.commands import CommandWriter
from listen_finalization.outbox.engine import SqliteEngine
from listen_finalization.outbox.sqlite import SqliteStore
from pathlib import Path

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

where = sys.argv[2]
run, commit = CommandWriter._run, SqliteEngine._commit
def stopped(self, name, values):
    done = None if name == where else run(self, name, values)
    return die() if name == where else done
def committed(self):
    if where == "before commit":
        die()
    commit(self)
    if where == "after commit":
        die()
CommandWriter._run, SqliteEngine._commit = stopped, committed
store = SqliteStore(Path(sys.argv[1]), Policy(handover=0))
asyncio.run(store.outbox.apply(Admit("ada", "c1", context={"title": "A"})))
"""

_KILLED_THERE = """
import asyncio, os, signal, sys
from listen_finalization.domain.commands import Admit
from listen_finalization.domain.policy import Policy
from listen_finalization.outbox.firestore import FirestoreStore
from listen_finalization.outbox.firestore.rpc import Rpc

where = sys.argv[2]
commit = Rpc.commit
async def committed(self, writes):
    if where == "after commit":
        await commit(self, writes)
    os.kill(os.getpid(), signal.SIGKILL)
Rpc.commit = committed
store = FirestoreStore(sys.argv[1], Policy())
asyncio.run(store.outbox.apply(Admit("ada", "c1", context={"title": "A"})))
"""


@contextmanager
def failing(where: str, code: int) -> Iterator[None]:
    """Let the store fail at one statement of an admission."""
    original = CommandWriter._run

    def run(self: CommandWriter, name: str, values: Any) -> sqlite3.Cursor:
        if name == where:
            error = sqlite3.OperationalError("planted")
            error.sqlite_errorcode = code
            raise error
        return original(self, name, values)

    CommandWriter._run = run  # type: ignore[method-assign]
    try:
        yield
    finally:
        CommandWriter._run = original  # type: ignore[method-assign]


async def nothing_happened(home: House) -> None:
    columns = ("status", "finalization_job_id", "calendar_meeting_context")
    [row] = (await home.ground.tables()).conversations
    assert [row[name] for name in columns] == ["in_progress", None, None]
    assert not await home.jobs()


async def a_repeat_succeeds(home: House) -> None:
    async with home.client() as client:
        answer = await client.post(PATH, json=BODY)
        assert answer.status_code == 200
        assert answer.json()["conversation"]["status"] == "processing"
        assert len(await home.jobs()) == 1
        assert (await home.job_of("c1")).finalization_revision == 1
    await all_checks(home)


@pytest.mark.parametrize("where", WRITES)
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_BUSY, "store-busy"),
        (sqlite3.SQLITE_FULL, "store-unavailable"),
        (sqlite3.SQLITE_IOERR_WRITE, "store-unavailable"),
    ],
)
async def test_a_write_that_fails_leaves_neither_half(
    file_ground: FileGround, where: str, code: int, kind: str
) -> None:
    async with house(file_ground, running=False) as home:
        await home.spoken("c1")
        async with home.client() as client:
            with failing(where, code):
                answer = await client.post(PATH, json=BODY)
        problem(answer, 503, kind)
        assert int(answer.headers["retry-after"]) > 0
        await nothing_happened(home)
        await a_repeat_succeeds(home)


async def test_a_refused_commit_leaves_neither_half(
    project_ground: ProjectGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Firestore all writes of an admission are one commit."""

    async def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionDenied("planted")  # type: ignore[no-untyped-call]

    async with house(project_ground, running=False) as home:
        await home.spoken("c1")
        async with home.client() as client:
            with monkeypatch.context() as patch:
                patch.setattr(FirestoreAsyncClient, "commit", refuse)
                answer = await client.post(PATH, json=BODY)
        problem(answer, 503, "store-unavailable")
        await nothing_happened(home)
        await a_repeat_succeeds(home)


@pytest.mark.parametrize("where", WRITES)
async def test_a_process_killed_between_two_writes_leaves_neither_half(
    file_ground: FileGround, where: str
) -> None:
    async with house(file_ground, running=False) as home:
        await home.spoken("c1")
        assert killed(file_ground, where) == -9
        await nothing_happened(home)
        await a_repeat_succeeds(home)


async def test_a_process_killed_before_the_commit_leaves_neither_half(ground: Ground) -> None:
    async with house(ground, running=False) as home:
        await home.spoken("c1")
        assert killed(ground, "before commit") == -9
        await nothing_happened(home)
        await a_repeat_succeeds(home)


async def test_a_process_killed_after_the_commit_leaves_both_halves(ground: Ground) -> None:
    async with house(ground, running=False) as home:
        await home.spoken("c1")
        assert killed(ground, "after commit") == -9
        (job,) = await home.jobs()
        [row] = (await ground.tables()).conversations
        assert (row["status"], row["finalization_job_id"]) == ("processing", job.job_id)
        await a_repeat_succeeds(home)


def killed(ground: Ground, where: str) -> int:
    """Admit in a process of its own, which dies there; return how it ended."""
    script, store = _KILLED, str(ground.directory / "listen.db")
    if isinstance(ground, ProjectGround):
        script, store = _KILLED_THERE, ground.project
    command = [sys.executable, "-c", script, store, where]
    return subprocess.run(command, timeout=60, check=False).returncode
