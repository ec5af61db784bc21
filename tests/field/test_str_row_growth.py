"""str-row-growth: no number of retries, rounds and replays makes the row larger than its bound."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from listen_finalization.domain.codes import (
    Actor,
    EffectCode,
    EffectState,
    FailureCode,
    RedispatchCause,
    Status,
    Step,
    Verb,
)
from listen_finalization.domain.commands import (
    Admit,
    Checkpoint,
    ClaimJob,
    Command,
    Evict,
    Fail,
    Redispatch,
    Replay,
)
from listen_finalization.domain.content import Segment
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import MAX_DELIVERIES, MAX_HISTORY, Effect, Instant, Job
from listen_finalization.domain.policy import Policy
from listen_finalization.outbox import queries
from listen_finalization.outbox.engine import SqliteEngine
from listen_finalization.outbox.operations import Append

ROW_BOUND = 12_288
"""Bytes of a whole row: 34 effects with ids of 128 bytes, 32 history lines, and the fields."""

ROUNDS = 5_000
START = 1_700_000_000_000_000


class Life:
    """One job of a store under a clock set by hand, and the verbs that it goes through."""

    def __init__(self, path: Path) -> None:
        self.now = START
        self.engine = SqliteEngine(path, Policy(), clock=lambda: Instant(self.now))
        self.engine.connection.execute("PRAGMA synchronous = OFF")
        self._claims = 0
        segment = Segment("s", "a", 0.0, 1.0, "words")
        self.engine.apply_batch([Append("u" * 128, "c" * 128, (segment,))])
        self.job = self.send(Admit("u" * 128, "c" * 128))

    def send(self, command: Command) -> Job:
        self.now += 10**9
        [answer] = self.engine.apply_batch([command])
        assert isinstance(answer, Decision), answer
        assert answer.changed
        assert answer.job is not None
        self.job = answer.job
        return answer.job

    def claim(self) -> Job:
        self._claims += 1
        claim_id = f"{self._claims:032x}"
        return self.send(ClaimJob(self.job.job_id, self.job.dispatch_generation, claim_id))

    def fail(self, code: FailureCode, retry: int | None = None) -> Job:
        return self.send(Fail(self.job.claim, code, task_retry=retry))

    def replay(self) -> Job:
        self._claims += 1
        return self.send(Replay(self.job.job_id, self.job.dispatch_generation, f"{self._claims}"))

    def redispatch(self) -> Job:
        generation = self.job.dispatch_generation
        return self.send(Redispatch(self.job.job_id, generation, RedispatchCause.REQUEUE))

    def evict(self) -> Job:
        job, self._claims = self.job, self._claims + 1
        order = (job.job_id, job.dispatch_generation, job.lease_epoch, f"{self._claims:032x}")
        return self.send(Evict(*order))

    def row_size(self) -> int:
        row = self.engine.connection.execute("SELECT * FROM conversation_finalization_jobs")
        return sum(map(_size, row.fetchone()))


def _size(value: Any) -> int:
    return len(value.encode()) if isinstance(value, str) else 8


@pytest.fixture
def life() -> Iterator[Life]:
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as home:
        made = Life(Path(home) / "store.db")
        yield made
        made.engine.close()


def _largest_effects() -> tuple[Effect, ...]:
    longest = max(EffectCode, key=len)
    deliveries = (
        Effect(Step.FANOUT, EffectState.DROPPED, f"{number:0128}", longest, 9_999)
        for number in range(MAX_DELIVERIES)
    )
    return (Effect(Step.ENRICH, EffectState.PENDING), *deliveries)


def test_row_of_a_long_life_stays_under_its_bound(life: Life) -> None:
    codes = cycle(FailureCode)
    largest = 0
    for _ in range(ROUNDS // 10):
        life.claim()
        life.send(Checkpoint(life.job.claim, effects=_largest_effects()))
        life.fail(next(codes))
        life.redispatch()
        life.claim()
        life.evict()
        life.claim()
        life.fail(next(codes), retry=99)
        assert life.job.status is Status.DEAD_LETTER
        largest = max(largest, life.row_size())
        life.replay()
    assert largest < ROW_BOUND
    assert life.job.replay_count == ROUNDS // 10
    assert len(life.job.history) == MAX_HISTORY
    stored = queries.job(life.engine.connection, life.job.job_id)
    assert stored == life.job
    assert life.claim().status is Status.LEASED


def test_equal_rounds_are_folded_into_one_line(life: Life) -> None:
    for _ in range(ROUNDS):
        life.redispatch()
    admitted, folded = life.job.history
    assert (admitted.verb, admitted.count) == (Verb.ADMIT, 1)
    assert (folded.verb, folded.actor) == (Verb.REDISPATCH, Actor.RECONCILER)
    assert folded.count == ROUNDS
    assert life.row_size() < 1_024
