"""Nothing that people said leaves by a log, an answer, a row or a task, whatever goes wrong."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from integration.receivers import Receiver, receivers
from listen_finalization.dispatch.in_process import Answer
from listen_finalization.domain.budgets import DispatchMode
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.settings import Settings
from listen_finalization.stack import Stack
from listen_finalization.testing.canary import KeptLog, leaks
from listen_finalization.testing.processor import Act, FakeProcessor, in_turn, remembered

from .planted import SPILLS, context, planted, quoting, segments, spilling, url

UID = "ada"


class Watched:
    """A stack, everything that it says, and what must not be in it."""

    def __init__(self, stack: Stack, texts: dict[str, str], log: KeptLog) -> None:
        self.stack = stack
        self.texts = texts
        self.log = log
        self.answers: list[str] = []
        self.tasks: list[str] = []
        self.secrets: dict[str, str] = {}
        self._watch_tasks()

    def _watch_tasks(self) -> None:
        """Keep every delivery of the dispatcher, with its answer."""

        post = self.stack.worker.post

        async def watched(path: str, /, *, json: Any, headers: Mapping[str, str]) -> Answer:
            self.secrets.setdefault("task token", headers["Authorization"][7:])
            told = {**headers, "Authorization": "kept apart"}
            self.tasks.append(f"{told} {path} {json}")
            answer = await post(path, json=json, headers=headers)
            self.answers.append(f"{answer.status} {answer.body!r}")
            return answer

        self.stack.worker.post = watched  # type: ignore[method-assign]

    async def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        self.secrets.setdefault("user token", self.stack.user_token(UID))
        headers = {"Authorization": f"Bearer {self.secrets['user token']}"}
        transport = httpx.ASGITransport(self.stack.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="https://x.example") as client:
            answer = await client.request(method, path, headers=headers, **options)
        self.answers.append(f"{answer.headers} {answer.text}")
        return answer

    async def settled(self, limit: float = 30.0) -> None:
        path = "/v1/conversations/c1/finalization"
        async with asyncio.timeout(limit):
            while not (await self.ask("GET", path)).json()["terminal"]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    def proved(self, directory: Path, stderr: str = "") -> None:
        places = {
            "log": self.log.text,
            "answers": "\n".join(self.answers),
            "tasks": "\n".join(self.tasks),
            "rows": job_rows(directory),
            "stderr": stderr,
            "signals": repr(self.stack.signals.counts),
        }
        assert self.tasks and self.answers and self.log.lines
        assert leaks({**self.texts, **self.secrets}, places) == []


def job_rows(directory: Path) -> str:
    connection = sqlite3.connect(directory / "listen.db", timeout=10)
    connection.row_factory = sqlite3.Row
    found = connection.execute("SELECT * FROM conversation_finalization_jobs").fetchall()
    connection.close()
    return json.dumps([dict(row) for row in found])


@pytest.fixture
def log() -> Iterator[KeptLog]:
    kept, root = KeptLog(), logging.getLogger()
    before = root.level
    root.addHandler(kept)
    root.setLevel(logging.DEBUG)
    yield kept
    root.removeHandler(kept)
    root.setLevel(before)


@asynccontextmanager
async def watched(directory: Path, log: KeptLog, receiver: Receiver) -> AsyncIterator[Watched]:
    texts = planted()
    settings = Settings(
        dispatch_mode=DispatchMode.EMBEDDED,
        data_dir=directory,
        firebase_project="canary",
        admit_loopback_destinations=True,
        backoff_seconds=0.02,
        backoff_limit_seconds=0.02,
        tasks_max_attempts=2,
    )
    async with Stack(settings, processor=FakeProcessor()) as stack:
        found = Watched(stack, texts, log)
        found.secrets["secret"] = await stack.destinations.add(
            UID, "crm", url(texts, receiver.port)
        )
        yield found


async def spoken_and_finalized(here: Watched) -> None:
    said = [
        {"id": s.id, "speaker": s.speaker, "start": s.start, "end": s.end, "text": s.text}
        for s in segments(here.texts)
    ]
    put = await here.ask("PUT", "/v1/conversations/c1/segments", json={"segments": said})
    assert put.status_code == 200, put.text
    answer = await here.ask("POST", "/v1/conversations/c1/finalize", json=context(here.texts))
    assert answer.status_code == 200, answer.text


def acting(processor: Any, **acts: Act) -> None:
    processor._acts.update(acts)


@pytest.mark.parametrize("step", ["enrich", "memories"])
@pytest.mark.parametrize("spill", SPILLS)
async def test_no_exception_of_a_processor_tells_what_it_holds(
    spill: str, step: str, tmp_path: Path, log: KeptLog, capfd: pytest.CaptureFixture[str]
) -> None:
    with receivers(1) as (receiver,):
        async with watched(tmp_path, log, receiver) as here:
            good = quoting(here.texts) if step == "enrich" else remembered
            act = in_turn(spilling(SPILLS[spill], here.texts), good)
            acting(here.stack.runs.processor, **{"enrich": quoting(here.texts), step: act})
            await spoken_and_finalized(here)
            if spill in ("environment", "keys"):
                await deferred(here)
            else:
                await here.settled()
                assert len(receiver.received) == 1
        here.proved(tmp_path, "".join(capfd.readouterr()))


async def deferred(here: Watched) -> None:
    """Wait until the fault was recorded: its next hand-over is half a minute away."""
    async with asyncio.timeout(10):
        while True:
            (job,) = (await here.stack.store.outbox.list()).jobs
            if job.releases:
                return
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("status", [200, 302, 404, 500])
async def test_no_receiver_and_no_dead_letter_tells_more(
    status: int, tmp_path: Path, log: KeptLog, capfd: pytest.CaptureFixture[str]
) -> None:
    made = Receiver(lambda _: status)
    made.start()
    try:
        async with watched(tmp_path, log, made) as here:
            acting(here.stack.runs.processor, enrich=quoting(here.texts))
            await spoken_and_finalized(here)
            await here.settled()
        here.proved(tmp_path, "".join(capfd.readouterr()))
    finally:
        made.stop()


async def test_a_dead_letter_holds_a_code_and_nothing_else(
    tmp_path: Path, log: KeptLog, capfd: pytest.CaptureFixture[str]
) -> None:
    with receivers(1) as (receiver,):
        async with watched(tmp_path, log, receiver) as here:
            acting(here.stack.runs.processor, enrich=spilling(SPILLS["chained"], here.texts))
            await spoken_and_finalized(here)
            await here.settled()
            (job,) = (await here.stack.store.outbox.list()).jobs
            assert (job.status, job.failure_code) == ("dead_letter", "processor_error")
        here.proved(tmp_path, "".join(capfd.readouterr()))


async def test_the_watch_would_hear_an_exceptions_text(
    tmp_path: Path, log: KeptLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A negative control: with a service that logs what it caught, the proof fails."""

    def careless(self: Signals, event: Event, *, fault: Any = None, **_: Any) -> None:
        self.counts[event, ""] += 1
        logging.getLogger("careless").info("%s %r", event, fault)

    monkeypatch.setattr(Signals, "emit", careless)
    with receivers(1) as (receiver,):
        async with watched(tmp_path, log, receiver) as here:
            acting(here.stack.runs.processor, enrich=spilling(SPILLS["plain"], here.texts))
            await spoken_and_finalized(here)
            await here.settled()
        with pytest.raises(AssertionError, match="transcript"):
            here.proved(tmp_path)
