"""A mixed load on one store file, run by processes of its own, and what must be true after it."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

from listen_finalization.domain.commands import Admit, ClaimJob, Complete
from listen_finalization.domain.content import Segment
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import Job
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import StoreError
from listen_finalization.outbox.sqlite import SqliteStore

PATIENCE = 100.0


@dataclass
class Tally:
    """What one process was answered."""

    operations: int = 0
    appended: int = 0
    admitted: set[str] = field(default_factory=set)
    claimed: list[tuple[str, int]] = field(default_factory=list)
    completed: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    write_times: list[float] = field(default_factory=list)
    read_times: list[float] = field(default_factory=list)


class Worker:
    """Finalizes, claims, completes, polls, reconciles and counts on conversations of all."""

    def __init__(self, store: SqliteStore, number: int, conversations: int) -> None:
        self._store = store
        self._dice = random.Random(number)
        self._number = number
        self._conversations = conversations
        self._claims = 0
        self.tally = Tally()

    async def run(self, operations: int, at_once: int = 4) -> None:
        """Carry out `operations`, several at once."""
        while self.tally.operations < operations:
            await asyncio.gather(*(self._one() for _ in range(at_once)))

    async def _one(self) -> None:
        actions: Sequence[Callable[[str], Any]]
        actions = (self._append, self._finalize, self._run_job, self._poll, self._count)
        name = f"conversation-{self._dice.randrange(self._conversations)}"
        self.tally.operations += 1
        try:
            await self._dice.choices(actions, (3, 4, 4, 2, 1))[0](name)
        except StoreError as fault:
            self.tally.faults.append(type(fault).__name__)

    async def _timed(self, times: list[float], waiting: Any) -> Any:
        start = time.monotonic()
        answer = await waiting
        times.append(time.monotonic() - start)
        return answer

    async def _append(self, name: str) -> None:
        segment = Segment(f"s-{self._number}-{self.tally.operations}", "a", 0.0, 1.0, "words")
        append = self._store.conversations.append("user", name, [segment])
        await self._timed(self.tally.write_times, append)
        self.tally.appended += 1

    async def _finalize(self, name: str) -> None:
        answer = await self._timed(
            self.tally.write_times, self._store.outbox.apply(Admit("user", name))
        )
        if isinstance(answer, Decision) and answer.changed and answer.job is not None:
            self.tally.admitted.add(answer.job.job_id)

    async def _run_job(self, _: str) -> None:
        page = await self._timed(self.tally.read_times, self._store.outbox.due(50))
        if not page.rows:
            return
        row = self._dice.choice(page.rows)
        self._claims += 1
        claim = ClaimJob(row.job_id, row.generation, f"claim-{self._number}-{self._claims}")
        answer = await self._store.outbox.apply(claim)
        if isinstance(answer, Decision) and answer.job is not None and answer.job.leased_at:
            self.tally.claimed.append((row.job_id, answer.job.lease_epoch))
            await self._complete(answer.job)

    async def _complete(self, job: Job) -> None:
        done = await self._store.outbox.apply(Complete(job.claim))
        if isinstance(done, Decision) and done.changed and done.successor is not None:
            self.tally.admitted.add(done.successor.job_id)
        if isinstance(done, Decision) and done.changed:
            self.tally.completed.add(job.job_id)

    async def _poll(self, name: str) -> None:
        find = self._store.conversations.find("user", name)
        record = await self._timed(self.tally.read_times, find)
        if record is not None and record.conversation.job_id is not None:
            await self._store.outbox.get(record.conversation.job_id)

    async def _count(self, _: str) -> None:
        await self._timed(self.tally.read_times, self._store.outbox.counts())
        await self._store.outbox.oldest()


POLICY = Policy(handover=0, retry_floor=0)
"""The outbox is the queue: a job is due as soon as it is admitted."""


def work(path: Path, number: int, operations: int, slow: float, tell: Any) -> None:
    """Open the store in this process, work, and tell what came of it."""
    store = SqliteStore(path, POLICY)
    if slow:
        slow_down(store, slow)
    worker = Worker(store, number, conversations=max(operations // 8, 8))
    asyncio.run(worker.run(operations))
    store.close()
    tell.put(worker.tally)


def slow_down(store: SqliteStore, seconds: float) -> None:
    """Let every commit of the store take as long as on a disk with slow flushes."""
    engine = store._engine
    commit = engine._commit

    def slowly() -> None:
        time.sleep(seconds)  # under the write lock, where the flush is
        commit()

    engine._commit = slowly  # type: ignore[method-assign]


def run_processes(path: Path, count: int, operations: int, slow: float = 0.0) -> list[Tally]:
    """Run `count` processes on one file and return what each was answered."""
    context = multiprocessing.get_context("spawn")
    tell = context.Queue()
    processes = [
        context.Process(target=work, args=(path, number, operations // count, slow, tell))
        for number in range(count)
    ]
    for process in processes:
        process.start()
    tallies = [_told(tell) for _ in processes]
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode == 0
    return tallies


def _told(tell: Any) -> Tally:
    try:
        tally = tell.get(timeout=PATIENCE)
    except Empty:
        raise AssertionError("a process never finished") from None
    assert isinstance(tally, Tally)
    return tally


def adds_up(path: Path, tallies: Sequence[Tally]) -> None:
    """Assert that the file holds exactly what was answered, no more and no less."""
    with sqlite3.connect(path) as connection:
        ask = connection.execute
        assert ask("PRAGMA integrity_check").fetchone() == ("ok",)
        segments = ask("SELECT count(*) FROM segments").fetchone()[0]
        jobs = dict(ask("SELECT job_id, status FROM conversation_finalization_jobs").fetchall())
        epochs = ask("SELECT sum(lease_epoch) FROM conversation_finalization_jobs").fetchone()[0]
    assert segments == sum(tally.appended for tally in tallies)
    assert set(jobs) == set().union(*(tally.admitted for tally in tallies))
    done = {key for key, status in jobs.items() if status == "completed"}
    assert done == set().union(*(tally.completed for tally in tallies))
    claims = [claim for tally in tallies for claim in tally.claimed]
    assert len(claims) == len(set(claims)) == epochs


def percentile(times: Sequence[float], share: float) -> float:
    return sorted(times)[min(int(len(times) * share), len(times) - 1)]
