"""The product as it is measured: its settings, its data, and copies of prepared directories."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from listen_finalization.admission import Admission
from listen_finalization.domain.commands import Admit
from listen_finalization.domain.content import Enrichment, Memory, Segment
from listen_finalization.domain.decision import Decision
from listen_finalization.outbox.database import DATABASE
from listen_finalization.processing.protocol import Request
from listen_finalization.settings import Settings
from listen_finalization.stack import Stack

UID = "bench-user"
SLOTS = 4
_TALK = ("We said that we would meet on Friday.", "I will bring the papers.", "Good, see you then.")


class MeasurementError(RuntimeError):
    """A measured path did not do what it is measured for."""


class NoOp:
    """A processor that has nothing to tell."""

    def enrich(self, request: Request) -> Enrichment | None:
        del request
        return None

    def memories(self, request: Request, enrichment: Enrichment) -> tuple[Memory, ...]:
        del request, enrichment
        return ()


def settings(directory: Path, *, lease: int = 15) -> Settings:
    """Return the embedded defaults over a directory; slots and lease as they are measured."""
    return Settings.from_environment(
        {
            "LISTEN_FINALIZATION_DISPATCH_MODE": "embedded",
            "LISTEN_FINALIZATION_DATA_DIR": str(directory),
            "LISTEN_FINALIZATION_SLOTS": str(SLOTS),
            "LISTEN_FINALIZATION_LEASE_SECONDS": str(lease),
        }
    )


def conversation(number: int) -> str:
    return f"bench-{number:06d}"


async def in_flight(
    numbers: Iterable[int], width: int, action: Callable[[int], Awaitable[Any]]
) -> None:
    """Run the action for every number, `width` of them at once, from one iterator."""
    waiting = iter(numbers)

    async def producer() -> None:
        for number in waiting:
            await action(number)

    await asyncio.gather(*(producer() for _ in range(width)))


async def admit(admission: Admission, number: int) -> None:
    """Admit one conversation. Raises `MeasurementError` where nothing was admitted by it."""
    answer = await admission.admit(Admit(UID, conversation(number)))
    if not isinstance(answer, Decision) or not answer.changed:
        raise MeasurementError("an admission did not admit")


async def until(condition: Callable[[], bool], pause: float) -> None:
    """Look every `pause` seconds until the condition holds; nothing of the product is woken."""
    while not condition():  # noqa: ASYNC110 - the product has no event for a bench to wait on
        await asyncio.sleep(pause)


def prepare(directory: Path, count: int, *, admitted: bool) -> None:
    """Fill a data directory with conversations, and with their jobs where they are admitted."""
    asyncio.run(_prepare(directory, count, admitted))


async def _prepare(directory: Path, count: int, admitted: bool) -> None:
    stack = Stack(settings(directory), processor=NoOp())
    segments = tuple(
        Segment(f"s{place}", "speaker", float(place), place + 1.0, text)
        for place, text in enumerate(_TALK)
    )

    async def append(number: int) -> None:
        await stack.store.conversations.append(UID, conversation(number), segments)

    await in_flight(range(count), 64, append)
    if admitted:
        await in_flight(range(count), 64, lambda number: admit(stack.admission, number))
    stack.store.close()


def completed(directory: Path) -> int:
    """Count the jobs that were completed at their first claim."""
    return _count(directory, "status = 'completed' AND lease_epoch = 1 AND attempt_count = 1")


def queued(directory: Path) -> int:
    return _count(directory, "status = 'queued'")


def _count(directory: Path, condition: str) -> int:
    connection = sqlite3.connect(directory / DATABASE)
    try:
        sql = f"SELECT count(*) FROM conversation_finalization_jobs WHERE {condition}"
        return int(connection.execute(sql).fetchone()[0])
    finally:
        connection.close()


def job_places(directory: Path) -> dict[str, tuple[str, str]]:
    """Return uid and conversation id of every job."""
    connection = sqlite3.connect(directory / DATABASE)
    try:
        rows = connection.execute(
            "SELECT job_id, uid, conversation_id FROM conversation_finalization_jobs"
        )
        return {job_id: (uid, name) for job_id, uid, name in rows}
    finally:
        connection.close()


def demand_equal(what: str, found: int, wanted: int) -> None:
    """Raise `MeasurementError` where a pass did more or less than it was timed for."""
    if found != wanted:
        raise MeasurementError(f"{what}: {found} instead of {wanted}")


class Place:
    """The directory of one bench run: everything in it goes at its end."""

    def __init__(self, parent: Path) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        self.root = Path(tempfile.mkdtemp(prefix="work-", dir=parent))
        self._number = 0

    def new(self) -> Path:
        """Make an empty directory."""
        self._number += 1
        made = self.root / f"{self._number:03d}"
        made.mkdir(mode=0o700)
        return made

    def copy(self, prepared: Path) -> Path:
        """Copy a prepared data directory and put it on disk, so that no later flush pays for it."""
        made = self.new()
        for source in prepared.iterdir():
            if source.is_file():
                _flush(Path(shutil.copy2(source, made / source.name)))
        return made

    def drop(self, *directories: Path) -> None:
        for directory in directories:
            shutil.rmtree(directory, ignore_errors=True)

    def close(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def log_to(path: Path) -> None:
    """Let the product write its log lines, at INFO, to a file: they are part of every path."""
    logger = logging.getLogger("listen_finalization")
    logger.addHandler(logging.FileHandler(path, encoding="utf-8"))
    logger.setLevel(logging.INFO)
    logger.propagate = False
