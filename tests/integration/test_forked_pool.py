"""A forked pool of a processor outlives the kill of its process and holds nothing of the stack."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import plant as plants
from .plant import Plant

LEASE = 300
"""Seconds; a takeover that waited for it would fail the deadline below."""
WELL_BEFORE = 30.0


@pytest.fixture
def pids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of the pools' processes, which are ended after the test."""
    monkeypatch.setattr(plants, "SCRIPT", Path(__file__).with_name("pool_node.py"))
    path = tmp_path / "calls.jsonl"
    yield path
    for pid in noted(path):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def noted(path: Path) -> list[int]:
    return [int(pid) for pid in path.read_text("ascii").split()] if path.exists() else []


@pytest.mark.timeout(90)
async def test_a_restart_leads_and_takes_over_while_the_killed_process_pool_lives(
    tmp_path: Path, pids: Path
) -> None:
    async with Plant(tmp_path, lease_seconds=LEASE) as plant:
        assert plant.log == pids
        node = await plant.start()
        job = await plant.admit("c1")
        async with asyncio.timeout(15):
            while not noted(pids):  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.01)
        await node.kill()

        await plant.start()
        await plant.leased_again(job.job_id, after=1)
        await plant.until(1, WELL_BEFORE)
        os.kill(noted(pids)[0], 0)  # it lives: this raises where it does not
        ended = await plant.job(job.job_id)
        assert (ended.status, ended.lease_epoch, ended.attempt_count) == ("completed", 2, 2)
