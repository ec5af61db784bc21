"""str-disk-full, at the store: what was answered is on disk, what was refused is not, ever."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from listen_finalization.outbox.sqlite import SqliteStore

from .loads import POLICY, Worker, adds_up

LEAST_PAGES = 1
MOST_PAGES = 1_000_000


class Squeezed(Worker):
    """A worker that fills the disk, or frees it, right before some of its operations."""

    def __init__(self, store: SqliteStore, fill: Callable[[], None], free: Callable[[], None]):
        super().__init__(store, 1, conversations=40)
        self._moments = random.Random(7)
        self._turn = (fill, free)

    async def _one(self) -> None:
        if self._moments.random() < 0.05:
            self._turn[0]()
            self._turn = (self._turn[1], self._turn[0])
        await super()._one()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB, which only root can make."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a tmpfs needs root; the page limit's test stands in")
    home = tmp_path / "disk"
    home.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", home], check=False)
    if made.returncode != 0:
        pytest.skip("this machine does not allow a tmpfs mount; the page limit's test stands in")
    yield home
    subprocess.run(["umount", "-l", home], check=True)


def _fill(ballast: Path) -> None:
    """Take every byte that is left."""
    with ballast.open("ab", buffering=0) as file:
        for size in (65_536, 4_096):
            try:
                while file.write(b"x" * size) == size:
                    continue
            except OSError:
                continue


async def _squeeze(store: SqliteStore, fill: Callable[[], None], free: Callable[[], None]) -> None:
    worker = Squeezed(store, fill, free)
    await worker.run(600)
    free()
    assert set(worker.tally.faults) == {"StoreFullError"}
    assert not store.broken
    after = Worker(store, 2, conversations=40)
    await after.run(100)
    assert after.tally.faults == []
    store.close()
    path = store._arguments[0]
    adds_up(path, [worker.tally, after.tally])


def test_full_disk_refuses_and_recovers_without_restart(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    store = SqliteStore(small_disk / "store.db", POLICY)
    asyncio.run(_squeeze(store, lambda: _fill(ballast), lambda: ballast.unlink(missing_ok=True)))


def test_page_limit_refuses_and_recovers_without_restart(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db", POLICY)
    connection = store._engine.connection

    def limit(pages: int) -> None:
        with store._writer.at_rest:
            connection.execute(f"PRAGMA max_page_count = {pages}").fetchone()

    asyncio.run(_squeeze(store, lambda: limit(LEAST_PAGES), lambda: limit(MOST_PAGES)))
