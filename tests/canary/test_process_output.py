"""A process in asyncio's debug mode that spills, crashes and comes back prints no content."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from integration.receivers import receivers
from listen_finalization.domain.commands import Admit
from listen_finalization.outbox.sqlite import SqliteStore
from listen_finalization.processing.destinations import Destinations
from listen_finalization.testing.canary import leaks

from .node import settings
from .planted import planted, segments, url
from .test_whole_job import UID, job_rows


async def started(options: str, output: Path) -> asyncio.subprocess.Process:
    """Start the process; texts go in by stdin, so that no command line holds them."""
    with output.open("ab") as file:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-X",
            "dev",
            "-m",
            "canary.node",
            stdin=asyncio.subprocess.PIPE,
            stdout=file,
            stderr=file,
            cwd=Path(__file__).parent.parent,
        )
    assert process.stdin is not None
    process.stdin.write(options.encode())
    process.stdin.close()
    return process


@pytest.mark.timeout(100)
async def test_stderr_of_a_process_that_crashes_in_a_step_holds_no_content(
    tmp_path: Path,
) -> None:
    texts, directory, output = planted(), tmp_path / "data", tmp_path / "output.txt"
    directory.mkdir(mode=0o700)
    flag = tmp_path / "crashed"
    store = SqliteStore(directory / "listen.db", settings(directory).policy())
    with receivers(1) as (receiver,):
        destinations = Destinations(store.records)
        secret = await destinations.add(UID, "crm", url(texts, receiver.port))
        await store.conversations.append(UID, "c1", segments(texts))
        calendar = {"title": texts["calendar"]}
        await store.outbox.apply(Admit(UID, "c1", context=calendar))
        told = {"texts": texts, "directory": str(directory), "flag": str(flag)}
        first = await started(json.dumps({**told, "spilt": False}), output)
        async with asyncio.timeout(60):
            assert await first.wait() == -9
        second = await started(json.dumps({**told, "spilt": True}), output)
        async with asyncio.timeout(60):
            while not (await store.outbox.list()).jobs[0].terminal:  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.05)
        second.terminate()
        async with asyncio.timeout(20):
            assert await second.wait() == 0
        assert len(receiver.received) == 1
    (job,) = (await store.outbox.list()).jobs
    store.close()
    assert job.outcome == "success" and job.attempt_count > 10
    printed = output.read_text("utf-8")
    assert "step_fault" in printed
    places = {"output": printed, "rows": job_rows(directory)}
    assert leaks({**texts, "secret": secret}, places) == []
