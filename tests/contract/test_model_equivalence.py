"""Any sequence of commands leaves the store and a pure application of `decide` with equal rows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from listen_finalization.domain.codes import (
    Actor,
    EffectCode,
    EffectState,
    FailureCode,
    PurgeCause,
    RedispatchCause,
    ReleaseCause,
    Step,
)
from listen_finalization.domain.commands import (
    Abandon,
    Admit,
    Checkpoint,
    ClaimJob,
    Command,
    Complete,
    Evict,
    Fail,
    Fence,
    Park,
    Postpone,
    PresentKeys,
    Purge,
    Redispatch,
    Release,
    Replay,
    Resend,
    StepResult,
)
from listen_finalization.domain.content import Segment
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import Answer
from listen_finalization.domain.identity import job_id
from listen_finalization.domain.job import Claim, Effect, Instant, Job
from listen_finalization.outbox import queries
from listen_finalization.outbox.conformance import POLICY
from listen_finalization.outbox.engine import SqliteEngine
from listen_finalization.outbox.operations import Append, DeleteConversation

from .model import Model
from .sqlite_subject import START, memory_directory

UID = "user"
CONVERSATIONS = ("c1", "c2")
JOBS = tuple(job_id(UID, name, revision) for name in CONVERSATIONS for revision in (1, 2, 3))
CLAIM_IDS = ("k1", "k2", "k3", "k4")

conversations = st.sampled_from(CONVERSATIONS)
jobs = st.sampled_from(JOBS)
ids = st.sampled_from(CLAIM_IDS)
steps = st.sampled_from(list(Step))
effects = st.lists(
    st.builds(
        lambda step, state, destination: Effect(
            step, state, destination if step is Step.FANOUT else None, EffectCode.STORED
        ),
        steps,
        st.sampled_from(list(EffectState)),
        st.sampled_from(["d1", "d2"]),
    ),
    max_size=3,
).map(tuple)
results = st.lists(
    st.builds(StepResult, steps, st.sampled_from(['{"a":1}', '{"b":2}']), st.integers(0, 2)),
    max_size=2,
).map(tuple)


class Rows(NamedTuple):
    """Everything that a store holds of the user, as values."""

    jobs: Mapping[str, Job]
    results: Mapping[str, Mapping[tuple[Step, int], str]]
    conversations: Mapping[str, Conversation]
    published: Mapping[str, Any]


class Equal(Protocol):
    """A store of one user, beside the model."""

    def apply(self, command: Command) -> Answer: ...

    def expected(self, model: Model, command: Command) -> Answer: ...

    def append(self, name: str, segment: Segment, *, byok: bool) -> None: ...

    def delete(self, name: str) -> None: ...

    def rows(self) -> Rows: ...

    def close(self) -> None: ...


class Embedded:
    """The embedded store, on a file of its own."""

    def __init__(self, clock: Callable[[], Instant]) -> None:
        self._home = tempfile.TemporaryDirectory(dir=memory_directory())
        self._clock = clock
        self._engine = SqliteEngine(Path(self._home.name) / "store.db", POLICY, clock=clock)
        self._engine.connection.execute("PRAGMA synchronous = OFF")

    def apply(self, command: Command) -> Answer:
        answers: list[Answer] = self._engine.apply_batch([command])
        return answers[0]

    def expected(self, model: Model, command: Command) -> Answer:
        return model.apply(command, self._clock())

    def append(self, name: str, segment: Segment, *, byok: bool) -> None:
        self._engine.apply_batch([Append(UID, name, (segment,), byok=byok)])

    def delete(self, name: str) -> None:
        self._engine.apply_batch([DeleteConversation(UID, name)])

    def rows(self) -> Rows:
        connection = self._engine.connection
        jobs = {key: queries.job(connection, key) for key in JOBS}
        talks = {name: queries.record(connection, UID, name) for name in CONVERSATIONS}
        return Rows(
            {key: job for key, job in jobs.items() if job is not None},
            {key: held for key in JOBS if (held := queries.results(connection, key))},
            {name: found.conversation for name, found in talks.items() if found},
            {name: found.structured for name, found in talks.items() if found and found.structured},
        )

    def close(self) -> None:
        self._engine.close()
        self._home.cleanup()


class Equivalence(RuleBasedStateMachine):
    """Every rule sends one command to both; stale claims and generations are common."""

    def __init__(self, opened: Callable[[Callable[[], Instant]], Equal] = Embedded) -> None:
        super().__init__()
        self.now = START
        self.segments = 0
        self.model = Model(POLICY, UID)
        self.store = opened(lambda: Instant(self.now))

    def teardown(self) -> None:
        self.store.close()

    def send(self, command: Command) -> None:
        assert self.store.apply(command) == self.store.expected(self.model, command)

    def held(self, key: str) -> Job | None:
        return self.model.jobs.get(key)

    def claim(self, key: str, claim_id: str, stale: bool) -> Claim:
        job = self.held(key)
        if job is None:
            return Claim(key, 1, 1, claim_id)
        mine = Claim(key, job.dispatch_generation, job.lease_epoch, job.claim_id or claim_id)
        return replace(mine, epoch=mine.epoch - 1) if stale else mine

    def generation(self, key: str, ahead: int) -> int:
        job = self.held(key)
        return (job.dispatch_generation if job else 1) + ahead

    @rule(by=st.sampled_from([0, 1, 10**6, POLICY.lease, POLICY.handover, POLICY.retention]))
    def wait(self, by: int) -> None:
        self.now += by

    @rule(name=conversations, byok=st.integers(0, 5).map(lambda n: n == 0))
    def append(self, name: str, byok: bool) -> None:
        self.segments += 1
        segment = Segment(f"s{self.segments}", "a", 0.0, 1.0, "words")
        self.store.append(name, segment, byok=byok)
        self.model.append(name, byok=byok)

    @rule(name=conversations)
    def delete(self, name: str) -> None:
        self.store.delete(name)
        self.model.delete(name)

    @rule(name=conversations, force=st.booleans(), keys=st.booleans(), adopt=st.booleans())
    def admit(self, name: str, force: bool, keys: bool, adopt: bool) -> None:
        self.send(Admit(UID, name, force_process=force, holds_keys=keys, adopt=adopt))

    @rule(key=jobs, claim_id=ids, keys=st.booleans(), ahead=st.sampled_from([0, 0, 0, 1, -1]))
    def take(self, key: str, claim_id: str, keys: bool, ahead: int) -> None:
        self.send(ClaimJob(key, self.generation(key, ahead), claim_id, holds_keys=keys))

    @rule(key=jobs, claim_id=ids, stale=st.booleans(), told=effects, stored=results)
    def checkpoint(self, key: str, claim_id: str, stale: bool, told: Any, stored: Any) -> None:
        claim = self.claim(key, claim_id, stale)
        self.send(Checkpoint(claim, effects=told, results=stored))

    @rule(key=jobs, claim_id=ids, discard=st.booleans(), keys=st.booleans())
    def complete(self, key: str, claim_id: str, discard: bool, keys: bool) -> None:
        claim = self.claim(key, claim_id, stale=False)
        self.send(Complete(claim, discard=discard, holds_keys=keys))

    @rule(key=jobs, claim_id=ids, retry=st.sampled_from([None, None, 0, 9]))
    def fail(self, key: str, claim_id: str, retry: int | None) -> None:
        claim = self.claim(key, claim_id, stale=False)
        self.send(Fail(claim, FailureCode.PROVIDER_ERROR, task_retry=retry))

    @rule(key=jobs, claim_id=ids, cause=st.sampled_from(list(ReleaseCause)), paused=st.booleans())
    def release(self, key: str, claim_id: str, cause: ReleaseCause, paused: bool) -> None:
        claim = self.claim(key, claim_id, stale=False)
        code = FailureCode.ENVIRONMENT_PROVIDER
        self.send(Release(claim, cause, code, delay=1_000, lane_paused=paused))

    @rule(key=jobs, ahead=st.sampled_from([0, 0, 1]), cause=st.sampled_from(list(RedispatchCause)))
    def redispatch(self, key: str, ahead: int, cause: RedispatchCause) -> None:
        self.send(Redispatch(key, self.generation(key, ahead), cause))

    @rule(key=jobs, ahead=st.sampled_from([0, 0, 1]))
    def park(self, key: str, ahead: int) -> None:
        self.send(Park(key, self.generation(key, ahead)))

    @rule(key=jobs, name=conversations)
    def present(self, key: str, name: str) -> None:
        self.send(PresentKeys(key, UID, name))

    @rule(key=jobs, off=st.sampled_from([0, 0, 1]))
    def postpone(self, key: str, off: int) -> None:
        job = self.held(key)
        due = Instant(((job.reconcile_after_at if job else None) or START) + off)
        self.send(Postpone(key, self.generation(key, 0), due, 5_000_000))

    @rule(key=jobs, request=ids)
    def evict(self, key: str, request: str) -> None:
        job = self.held(key)
        self.send(Evict(key, self.generation(key, 0), job.lease_epoch if job else 1, request))

    @rule(key=jobs, request=ids, ahead=st.sampled_from([0, 0, 1]))
    def replay(self, key: str, request: str, ahead: int) -> None:
        self.send(Replay(key, self.generation(key, ahead), request))

    @rule(key=jobs, request=ids, destination=st.sampled_from(["d1", "d2"]), done=st.booleans())
    def resend(self, key: str, request: str, destination: str, done: bool) -> None:
        told = Effect(Step.FANOUT, EffectState.DONE, destination) if done else None
        self.send(Resend(key, destination, request, told))

    @rule(key=jobs)
    def fence(self, key: str) -> None:
        self.send(Fence(key, Actor.SWEEP))

    @rule(key=jobs)
    def abandon(self, key: str) -> None:
        self.send(Abandon(key))

    @rule(key=jobs, cause=st.sampled_from(list(PurgeCause)))
    def purge(self, key: str, cause: PurgeCause) -> None:
        self.send(Purge(key, cause))

    @invariant()
    def rows_are_equal(self) -> None:
        published = {name: json.loads(record) for name, record in self.model.published.items()}
        results = {key: held for key, held in self.model.results.items() if held}
        expected = Rows(self.model.jobs, results, self.model.conversations, published)
        assert self.store.rows() == expected


def walk(machine: Callable[[], Equivalence], examples: int, length: int) -> None:
    """Take the machine on random walks, the same ones each time."""
    run_state_machine_as_test(
        machine,  # type: ignore[arg-type]  # a factory, which it takes as well
        settings=settings(
            max_examples=examples,
            stateful_step_count=length,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_store_equals_the_model_after_every_command() -> None:
    walk(Equivalence, 60, 40)


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_store_equals_the_model_over_long_walks() -> None:
    walk(Equivalence, 1_500, 80)
