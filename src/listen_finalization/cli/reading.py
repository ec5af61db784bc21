"""Reading a data directory from beside its stack: no dispatcher, no key, no migration.

The file is opened for queries only; a stack that runs on it is not disturbed.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Self

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.faults import CommandError
from listen_finalization.dispatch.processes import LEADER, PROCESSES, lock_is_free
from listen_finalization.domain.codes import Status
from listen_finalization.domain.explain import Facts, Presence
from listen_finalization.domain.job import Instant, Job
from listen_finalization.outbox import queries
from listen_finalization.outbox.clock import AnchoredClock, boot_id
from listen_finalization.outbox.database import DATABASE
from listen_finalization.outbox.reader import Reader
from listen_finalization.outbox.statements import STATEMENTS
from listen_finalization.ports import JobPage

_PROCESS_DIGITS = 16
"""How many digits of a claim id name its process (`dispatch.processes`)."""


class StoredJobs:
    """The jobs of one data directory, as last committed; an async context manager.

    Every method raises `StoreError` for trouble with the file.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._reader = Reader(directory / DATABASE)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reader.close()

    async def now(self) -> Instant:
        """Return the store's time, of the anchor that its processes share."""
        return await self._reader.read(_now)

    async def get(self, job_id: str) -> Job:
        """Return the job. Raises `CommandError` where there is none."""
        job = await self._reader.read(lambda connection: queries.job(connection, job_id))
        if job is None:
            raise CommandError(
                "no job of this id is in the data directory",
                code=ExitCode.REFUSED,
                remedy="`listen-finalization jobs list` shows the ids; --data names the directory",
                word="job_unknown",
            )
        return job

    async def page(self, status: Status | None, limit: int, cursor: str | None) -> JobPage:
        """Return jobs, newest first; `limit` is 1 to 500."""
        return await self._reader.read(
            lambda connection: queries.job_page(connection, status, limit, cursor)
        )

    async def facts(self, job_id: str, *, max_attempts: int) -> Facts:
        """Return what `explain` asks for, locks of the directory included."""
        job = await self.get(job_id)
        return Facts(
            job,
            await self.now(),
            max_attempts,
            dispatcher=self._dispatcher(),
            owner_dead=job.claim_id is not None and self._dead(job.claim_id),
        )

    def _dispatcher(self) -> Presence:
        held = not lock_is_free(self._directory / LEADER)
        return Presence.RUNS if held else Presence.ABSENT

    def _dead(self, claim_id: str) -> bool:
        process = claim_id[:_PROCESS_DIGITS]
        if len(claim_id) != 2 * _PROCESS_DIGITS or not process.isalnum():
            return False
        return lock_is_free(self._directory / PROCESSES / f"{process}.lock")


def _now(connection: sqlite3.Connection) -> Instant:
    held = dict(connection.execute(STATEMENTS["read_meta"]).fetchall())
    if held.get("boot_id") == boot_id():
        return AnchoredClock(int(held["anchor_wall"]), int(held["anchor_boot"]))()
    return Instant(time.time_ns() // 1_000)
