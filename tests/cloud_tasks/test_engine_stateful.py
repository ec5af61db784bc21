"""Any order of calls, answers and time: what a queue promises holds after every step."""

from __future__ import annotations

from collections import Counter
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from listen_finalization.domain.job import Instant, seconds
from listen_finalization.testing.cloud_tasks import limits
from listen_finalization.testing.cloud_tasks.engine import Engine, Kept
from listen_finalization.testing.cloud_tasks.refusals import CallRefusedError, Code
from listen_finalization.testing.cloud_tasks.values import (
    Answer,
    Dispatch,
    Ending,
    Queue,
    QueueState,
    RateLimits,
    RetryConfig,
    Target,
    Task,
)

QUEUE = "projects/p/locations/l/queues/q"
START = Instant(1_760_000_000_000_000)
NAMES = st.integers(0, 5).map(lambda number: f"{QUEUE}/tasks/t{number}")
BAD = st.sampled_from(
    [
        Answer(500, Ending.HTTP_STATUS),
        Answer(302, Ending.HTTP_STATUS),
        Answer(None, Ending.UNREACHABLE),
    ]
)


class Life:
    """One task from its creation to its end."""

    def __init__(self, created: Instant) -> None:
        self.created = created
        self.attempts = 0
        self.ended: Instant | None = None


class QueueMachine(RuleBasedStateMachine):
    @initialize(
        rate=st.sampled_from([0.5, 3.0, 500.0]),
        concurrent=st.integers(1, 3),
        attempts=st.integers(1, 3),
    )
    def begin(self, rate: float, concurrent: int, attempts: int) -> None:
        self.now = START
        self.recorded: dict[str, Kept] = {}
        self.engine = Engine(self.record)
        retry = RetryConfig(attempts, 0, seconds(1), seconds(8), 2)
        self.queue = Queue(QUEUE, RateLimits(rate, concurrent), retry)
        self.engine.create_queue(self.queue, self.now)
        self.running: list[Dispatch] = []
        self.begun = 0
        self.paused = False
        self.lives: dict[str, Life] = {}

    def record(self, name: str, kept: Kept) -> None:
        """Follow every change: a task ends once, by becoming a tombstone."""
        self.recorded[name] = kept
        if isinstance(kept, int) and "/tasks/" in name:
            life = self.lives[name]
            assert life.ended is None, "ended twice"
            life.ended = self.now
            assert kept == self.now + limits.TASK_NAME_HELD

    @rule(name=NAMES, ahead=st.integers(0, 20))
    def create(self, name: str, ahead: int) -> None:
        schedule = Instant(self.now + seconds(ahead))
        life = self.lives.get(name)
        held = life is not None and (
            life.ended is None or self.now < life.ended + limits.TASK_NAME_HELD
        )
        try:
            self.engine.create_task(
                Task(name, Target("http://t/"), self.now, schedule, schedule), self.now
            )
        except CallRefusedError as refused:
            assert held and refused.code is Code.ALREADY_EXISTS
        else:
            assert not held, "a name was reused within its time"
            self.lives[name] = Life(self.now)

    @rule()
    def dispatch(self) -> None:
        for one in self.engine.dispatch(self.now):
            assert not self.paused, "begun while paused"
            assert one.task.ready <= self.now, "begun before its time"
            assert one.task.name not in [other.task.name for other in self.running]
            self.running.append(one)
            self.begun += 1
            self.lives[one.task.name].attempts += 1

    @precondition(lambda self: self.running)
    @rule(data=st.data(), bad=BAD, succeeds=st.booleans())
    def answer(self, data: Any, bad: Answer, succeeds: bool) -> None:
        one = data.draw(st.sampled_from(self.running))
        self.running.remove(one)
        life = self.lives[one.task.name]
        gone = life.ended is not None
        self.engine.settle(one, Answer(200) if succeeds else bad, self.now)
        spent = life.attempts >= self.queue.retry.max_attempts
        assert (life.ended is not None) is (gone or succeeds or spent)

    @rule(wait=st.sampled_from([0.1, 1, 5, 60, 86_400]))
    def advance(self, wait: float) -> None:
        self.now = Instant(self.now + seconds(wait))
        for late in self.engine.overdue(self.now):
            assert self.now - late.began >= limits.DEFAULT_DEADLINE
            self.running.remove(late)
            self.engine.settle(late, Answer(ending=Ending.DEADLINE_EXCEEDED), self.now)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        life = self.lives.get(name)
        try:
            self.engine.delete_task(name, self.now)
        except CallRefusedError as refused:
            assert refused.code is Code.NOT_FOUND
            assert life is None or life.ended is not None

    @rule(state=st.sampled_from(QueueState))
    def switch(self, state: QueueState) -> None:
        self.engine.set_state(QUEUE, state, self.now)
        self.paused = state is QueueState.PAUSED

    @invariant()
    def limits_hold(self) -> None:
        if not hasattr(self, "engine"):
            return
        queue = self.queue
        assert len(self.running) <= queue.rates.concurrent
        elapsed = (self.now - START) / 1_000_000
        assert self.begun <= queue.rates.burst + queue.rates.rate * elapsed + 0.01
        for life in self.lives.values():
            assert life.attempts <= queue.retry.max_attempts

    @invariant()
    def what_is_recorded_is_what_is_there(self) -> None:
        if not hasattr(self, "engine"):
            return
        there = {task.name: task for task in self.engine.tasks(QUEUE, self.now)}
        kept = {name: one for name, one in self.recorded.items() if isinstance(one, Task)}
        assert kept == there
        alive = Counter(name for name, life in self.lives.items() if life.ended is None)
        assert set(alive) == set(there)

    def teardown(self) -> None:
        """Let every task come to its end: none is forgotten."""
        if not hasattr(self, "engine"):
            return
        self.switch(QueueState.RUNNING)
        for _ in range(200):
            self.dispatch()
            for one in list(self.running):
                self.running.remove(one)
                self.engine.settle(one, Answer(200), self.now)
            due = self.engine.next_event(self.now)
            if due is None:
                break
            self.now = max(due, self.now)
        assert all(life.ended is not None for life in self.lives.values())


QueueMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, print_blob=False
)
TestQueue = QueueMachine.TestCase
