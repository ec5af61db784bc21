"""One queue at work: its tasks, its rate, its attempts under way. Pure; time is an argument."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

from listen_finalization.domain.job import Instant
from listen_finalization.testing.cloud_tasks import limits
from listen_finalization.testing.cloud_tasks.bucket import Bucket
from listen_finalization.testing.cloud_tasks.schedule import Schedule
from listen_finalization.testing.cloud_tasks.values import (
    Answer,
    Attempt,
    Dispatch,
    Queue,
    QueueState,
    Task,
)


class Lane:
    """The tasks of one queue; `kept` is told every change, `ended` every task that leaves."""

    def __init__(
        self,
        queue: Queue,
        now: Instant,
        numbers: Iterator[int] | None = None,
        *,
        kept: Callable[[Task], None],
        ended: Callable[[str, Instant], None],
    ) -> None:
        self.queue = queue
        self.tasks: dict[str, Task] = {}
        self.running: dict[int, Dispatch] = {}
        self._numbers = numbers or itertools.count(1)
        self._kept = kept
        self._ended = ended
        self._schedule = Schedule()
        self._bucket = Bucket(queue.rates.rate, queue.rates.burst, now)

    def configure(self, queue: Queue, now: Instant) -> None:
        """Take other numbers or another state; a new rate starts with a full bucket."""
        if queue.rates.rate != self.queue.rates.rate:
            self._bucket = Bucket(queue.rates.rate, queue.rates.burst, now)
        self.queue = queue

    def add(self, task: Task) -> None:
        """Take a task in, new or from a state file; `kept` is not told."""
        self.tasks[task.name] = task
        self._schedule.put(task.name, task.ready)

    def end(self, name: str, now: Instant) -> None:
        """Let a task go, whether it waits or runs; an answer that still comes finds nothing."""
        del self.tasks[name]
        self._schedule.drop(name)
        self._ended(name, now)

    def purge(self, now: Instant) -> None:
        """Let every task go."""
        for name in list(self.tasks):
            self.end(name, now)

    def dispatch(self, now: Instant, newest: Callable[[], bool]) -> Dispatch | None:
        """Begin the next attempt that state, concurrency, schedule and rate allow."""
        if not self._open:
            return None
        self._retire(now)
        ready = self._schedule.first()
        if ready is None or ready > now or not self._bucket.take(now):
            return None
        name = self._schedule.take(now, newest=newest())
        return None if name is None else self._begin(self.tasks[name], now)

    def force(self, name: str, now: Instant) -> Dispatch:
        """Begin an attempt at once, whatever the limits say and even beside another one."""
        self._schedule.drop(name)
        return self._begin(self.tasks[name], now, forced=True)

    def settle(self, number: int, answer: Answer, now: Instant) -> None:
        """Note an answer; one to an attempt that is over, or to a task that is gone, is dropped."""
        dispatch = self.running.pop(number, None)
        task = self.tasks.get(dispatch.task.name) if dispatch is not None else None
        if dispatch is None or task is None:
            return
        if answer.succeeded:
            self.end(task.name, now)
            return
        self._failed(_answered(task, dispatch, answer, now), dispatch, now)

    def overdue(self, now: Instant) -> list[Dispatch]:
        """Return the attempts whose deadline has passed."""
        return [one for one in self.running.values() if one.expires <= now]

    def next_event(self, now: Instant) -> Instant | None:
        """Return when something can happen by itself; None while only calls or answers can."""
        moments = [one.expires for one in self.running.values()]
        ready = self._schedule.first()
        if ready is not None and self._open:
            moments.append(max(ready, self._bucket.next_token(now)))
        return min(moments, default=None)

    @property
    def _open(self) -> bool:
        queue = self.queue
        return queue.state is QueueState.RUNNING and len(self.running) < queue.rates.concurrent

    def _retire(self, now: Instant) -> None:
        """Let tasks go that are older than any task may become."""
        while (oldest := next(iter(self.tasks.values()), None)) is not None:
            if now - oldest.created < limits.RETENTION:
                return
            self.end(oldest.name, now)

    def _begin(self, task: Task, now: Instant, *, forced: bool = False) -> Dispatch:
        attempt = Attempt(scheduled=task.schedule, dispatched=now)
        first = task.first or attempt
        counted = replace(task, dispatches=task.dispatches + 1, first=first, last=attempt)
        number = next(self._numbers)
        dispatch = Dispatch(
            number, task, self.queue.name, now, Instant(now + task.deadline), forced=forced
        )
        self.running[number] = dispatch
        self.tasks[task.name] = counted
        self._kept(counted)
        return dispatch

    def _failed(self, task: Task, dispatch: Dispatch, now: Instant) -> None:
        retry = task.retry or self.queue.retry
        begun = task.first.dispatched if task.first is not None else now
        beside = any(one.task.name == task.name for one in self.running.values())
        # RunTask counts the wait from the call (reference, RunTask).
        base = dispatch.began if dispatch.forced else now
        again = Instant(base + retry.delay(task.dispatches))
        if not beside and retry.exhausted(task.dispatches, now - begun):
            self.end(task.name, now)
            return
        self.tasks[task.name] = kept = replace(task, schedule=again, ready=again)
        self._kept(kept)
        if not beside:
            self._schedule.put(task.name, again)


def _answered(task: Task, dispatch: Dispatch, answer: Answer, now: Instant) -> Task:
    """Note the answer on the task; of several attempts at once the last answer is kept."""
    scheduled = dispatch.task.schedule
    last = Attempt(scheduled, dispatch.began, now, answer.status, answer.ending)
    heard = 1 if answer.status is not None else 0
    return replace(task, responses=task.responses + heard, last=last)
