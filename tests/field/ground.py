"""Where the stores of a case keep their rows: a file, or a project of the Firestore emulator."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from contract.firestore_subject import FirestoreSubject
from contract.sqlite_subject import SqliteSubject
from integration.firestore_rows import columns, tables_of
from integration.invariants import JOBS, Rows, Tables, rows_of
from listen_finalization.domain.job import Job
from listen_finalization.domain.policy import Policy
from listen_finalization.outbox.database import DATABASE
from listen_finalization.outbox.firestore import FirestoreStore
from listen_finalization.outbox.sqlite import SqliteStore
from listen_finalization.ports import Outbox, Store
from listen_finalization.testing.clock import FakeClock

_CONTENT = ("conversations", "segments", "memories", "step_results")


class Ground(Protocol):
    """Outlives the stores that are opened on it, as a database outlives its processes."""

    @property
    def directory(self) -> Path:
        """Where key files and the like may lie."""
        ...

    def store(self, policy: Policy, clock: FakeClock) -> AbstractAsyncContextManager[Store]:
        """Open a store as one process does; moving `clock` moves the time that it goes by."""
        ...

    async def jobs(self) -> Rows:
        """Read the jobs, in the columns of the embedded store."""
        ...

    async def tables(self) -> Tables:
        """Read everything that the invariants speak of."""
        ...

    async def conversations(self) -> Any:
        """Return all that holds content as it is stored, to be compared with later."""
        ...

    async def own(self) -> Any:
        """Return all that must hold none: jobs and records."""
        ...

    async def set_conversation(self, uid: str, key: str, fields: Mapping[str, Any]) -> None:
        """Change fields as another part of the application does."""
        ...

    async def remove_conversation(self, uid: str, key: str) -> None:
        """Remove a conversation as another part of the application does, without a trace."""
        ...


class FileGround:
    """One SQLite file. Its time stands still between two moves of a clock."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._path = directory / DATABASE

    @asynccontextmanager
    async def store(self, policy: Policy, clock: FakeClock) -> AsyncIterator[Store]:
        made = SqliteStore(self._path, policy, clock=clock)
        yield made
        made.close()

    async def jobs(self) -> Rows:
        return rows_of(self._path, JOBS)

    async def tables(self) -> Tables:
        return Tables(
            jobs=await self.jobs(),
            conversations=rows_of(self._path, "conversations"),
            results=rows_of(self._path, "step_results"),
            memories=rows_of(self._path, "memories"),
        )

    async def conversations(self) -> Any:
        return [rows_of(self._path, name) for name in _CONTENT]

    async def own(self) -> Any:
        return [rows_of(self._path, name) for name in (JOBS, "records")]

    async def set_conversation(self, uid: str, key: str, fields: Mapping[str, Any]) -> None:
        with contextlib.closing(SqliteSubject(self._path)) as subject:
            await subject.set_conversation(uid, key, fields)

    async def remove_conversation(self, uid: str, key: str) -> None:
        with contextlib.closing(SqliteSubject(self._path)) as subject:
            await subject.remove_conversation(uid, key)


class ProjectGround:
    """A project of the emulator. Its time is the server's, and goes on beside each clock."""

    def __init__(self, directory: Path, host: str) -> None:
        """Take the emulator's address, which `FIRESTORE_EMULATOR_HOST` must name as well."""
        self.directory = directory
        self.host = host
        self._subject = FirestoreSubject()

    @property
    def project(self) -> str:
        return self._subject.project

    @asynccontextmanager
    async def store(self, policy: Policy, clock: FakeClock) -> AsyncIterator[Store]:
        begun = clock()
        made = FirestoreStore(self.project, policy, shift=lambda: clock() - begun)
        yield made
        await made.close()

    async def jobs(self) -> Rows:
        return [columns(job) for job in await all_jobs(self._subject.outbox)]

    async def tables(self) -> Tables:
        return await tables_of(self._subject.client, await all_jobs(self._subject.outbox))

    async def conversations(self) -> Any:
        return await self._documents(
            "conversations", "memories", "conversation_finalization_results"
        )

    async def own(self) -> Any:
        return await self._documents(JOBS, "conversation_finalization_rows")

    async def _documents(self, *kinds: str) -> Any:
        return {
            found.reference.path: found.to_dict()
            for kind in kinds
            async for found in self._subject.client.collection_group(kind).stream()
        }

    async def set_conversation(self, uid: str, key: str, fields: Mapping[str, Any]) -> None:
        await self._subject.set_conversation(uid, key, fields)

    async def remove_conversation(self, uid: str, key: str) -> None:
        await self._subject.remove_conversation(uid, key)

    async def close(self) -> None:
        await self._subject.close()


async def traces(ground: Ground) -> Any:
    """Return everything that is stored, to be compared with what is stored later."""
    return await ground.conversations(), await ground.own()


async def all_jobs(outbox: Outbox) -> list[Job]:
    found: list[Job] = []
    cursor = None
    while True:
        page = await outbox.list(limit=500, cursor=cursor)
        assert page.unreadable == ()
        found += page.jobs
        cursor = page.cursor
        if cursor is None:
            return found
