"""A data directory with real processes at work in it, and the test beside them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, Self

from listen_finalization.admission import Admission
from listen_finalization.domain.codes import Actor
from listen_finalization.domain.commands import Admit
from listen_finalization.domain.content import Segment
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import Job
from listen_finalization.observe.signals import Signals
from listen_finalization.outbox.sqlite import SqliteStore
from listen_finalization.processing.destinations import Destinations
from listen_finalization.testing.processor import Call, read_calls

from .node import node_settings

SCRIPT = Path(__file__).with_name("node.py")


class Node:
    """One process of the stack."""

    def __init__(self, process: asyncio.subprocess.Process, started: float) -> None:
        self.process = process
        self.started = started

    @property
    def pid(self) -> int:
        return self.process.pid

    async def kill(self) -> None:
        """Kill -9 and wait until the process is gone."""
        os.kill(self.pid, signal.SIGKILL)
        await self.process.wait()

    async def end(self) -> int:
        self.process.terminate()
        async with asyncio.timeout(20):
            return await self.process.wait()


class NoHandOver:
    """The test only commits; the processes must see it by themselves."""

    async def hand_over(self, job: Job, *, delay: int = 0) -> bool:
        return True


class Plant:
    """Starts and kills processes, admits jobs, and reads what came of them."""

    def __init__(self, directory: Path, *, delay: float = 0.1, **settings: Any) -> None:
        self.directory = directory / "data"
        self.directory.mkdir(mode=0o700)
        self.log = directory / "calls.jsonl"
        self.stderr = directory / "stderr.txt"
        self.settings = settings
        self.delay = delay
        self.nodes: list[Node] = []
        policy = node_settings(self.directory, **settings).policy()
        self.store = SqliteStore(self.directory / "listen.db", policy)
        self.destinations = Destinations(self.store.records)
        self._admission = Admission(self.store.outbox, NoHandOver(), Signals())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for node in self.nodes:
            if node.process.returncode is None:
                await node.kill()
        self.store.close()

    async def start(self) -> Node:
        """Start a process; it runs when this returns."""
        options = {
            "directory": str(self.directory),
            "log": str(self.log),
            "delay": self.delay,
            "settings": self.settings,
        }
        with self.stderr.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                str(SCRIPT),
                json.dumps(options),
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
            )
        assert process.stdout is not None
        async with asyncio.timeout(30):
            line = await process.stdout.readline()
        assert line == b"ready\n", self.stderr.read_text("utf-8")
        node = Node(process, time.monotonic())
        self.nodes.append(node)
        return node

    async def admit(self, conversation_id: str, *, uid: str = "ada") -> Job:
        said = Segment(f"{conversation_id}:1", "Ada", 0.0, 2.0, f"We ship {conversation_id} soon.")
        await self.store.conversations.append(uid, conversation_id, [said])
        answer = await self._admission.admit(Admit(uid, conversation_id, Actor.CUSTOMER))
        assert isinstance(answer, Decision) and answer.job is not None
        return answer.job

    async def jobs(self) -> list[Job]:
        found: list[Job] = []
        cursor = None
        while True:
            page = await self.store.outbox.list(limit=500, cursor=cursor)
            found += page.jobs
            cursor = page.cursor
            if cursor is None:
                return found

    async def job(self, job_id: str) -> Job:
        found = await self.store.outbox.get(job_id)
        assert found is not None
        return found

    def calls(self) -> list[Call]:
        return read_calls(self.log)

    async def terminal(self) -> int:
        return sum(job.terminal for job in await self.jobs())

    async def until(self, count: int, limit: float) -> float:
        """Wait until at least `count` jobs are terminal; return how long that took."""
        begun = time.monotonic()
        async with asyncio.timeout(limit):
            while await self.terminal() < count:  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.02)
        return time.monotonic() - begun

    async def leased(self, job_id: str, *, limit: float = 15.0) -> Job:
        """Wait until somebody runs the job."""
        async with asyncio.timeout(limit):
            while (found := await self.job(job_id)).status != "leased":  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.01)
        return found

    async def leased_again(self, job_id: str, *, after: int, limit: float = 30.0) -> None:
        """Wait until a claim later than the epoch `after` was made."""
        async with asyncio.timeout(limit):
            while (await self.job(job_id)).lease_epoch <= after:  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.01)
