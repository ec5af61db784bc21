"""The queues of Cloud Tasks: names, tombstones, calls. Pure and synchronous; time is an argument.

Every call raises `CallRefusedError` with the gRPC status that production gives.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

from listen_finalization.domain.job import Instant
from listen_finalization.testing.cloud_tasks import limits, names
from listen_finalization.testing.cloud_tasks.lane import Lane
from listen_finalization.testing.cloud_tasks.refusals import CallRefusedError, Code
from listen_finalization.testing.cloud_tasks.values import (
    Answer,
    Dispatch,
    Queue,
    QueueState,
    Task,
)

Kept = Queue | Task | Instant | None
"""What a name now stands for: a queue, a task, a tombstone that ends then, or nothing."""


class Engine:
    """Queues by name. `record` is told every change, as what a name now stands for."""

    def __init__(self, record: Callable[[str, Kept], None] | None = None) -> None:
        self._record = record or (lambda _name, _kept: None)
        self._lanes: dict[str, Lane] = {}
        self._held: dict[str, Instant] = {}
        self._held_queues: dict[str, Instant] = {}
        self._numbers = itertools.count(1)

    def restore(self, name: str, kept: Kept, now: Instant) -> None:
        """Put back what was recorded: queues before their tasks. Nothing is recorded anew."""
        match kept:
            case Queue():
                self._open(kept, now)
            case Task():
                self._lane(names.parent_of(name), now).add(kept)
            case None:
                pass
            case until:
                (self._held if "/tasks/" in name else self._held_queues)[name] = until

    def create_queue(self, queue: Queue, now: Instant) -> Queue:
        """Create a queue; a name stays taken for `limits.QUEUE_NAME_HELD` after its deletion."""
        if queue.name in self._lanes:
            raise CallRefusedError(Code.ALREADY_EXISTS, "Queue already exists")
        if _taken(self._held_queues, queue.name, now):
            raise CallRefusedError(
                Code.FAILED_PRECONDITION,
                "The queue cannot be created because a queue with this name existed too recently.",
            )
        self._held_queues.pop(queue.name, None)
        self._open(queue, now)
        self._record(queue.name, queue)
        return queue

    def queue(self, name: str, now: Instant) -> Queue:
        return self._lane(name, now).queue

    def has_queue(self, name: str) -> bool:
        return name in self._lanes

    def queues(self, parent: str) -> list[Queue]:
        """Return the queues of a location by name."""
        found = (
            lane.queue for name, lane in self._lanes.items() if names.parent_of(name) == parent
        )
        return sorted(found, key=lambda queue: queue.name)

    def update_queue(self, queue: Queue, now: Instant) -> Queue:
        """Give an existing queue other limits and retry numbers; its state stays."""
        lane = self._lane(queue.name, now)
        changed = replace(lane.queue, rates=queue.rates, retry=queue.retry)
        return self._configure(lane, changed, now)

    def delete_queue(self, name: str, now: Instant) -> None:
        """Delete a queue and its tasks; answers to what runs are dropped."""
        lane = self._lane(name, now)
        lane.purge(now)
        del self._lanes[name]
        self._hold(self._held_queues, name, Instant(now + limits.QUEUE_NAME_HELD), now)

    def purge_queue(self, name: str, now: Instant) -> Queue:
        """Delete every task of a queue at once (production: within a minute)."""
        lane = self._lane(name, now)
        lane.purge(now)
        return self._configure(lane, replace(lane.queue, purged=now), now)

    def set_state(self, name: str, state: QueueState, now: Instant) -> Queue:
        """Pause or resume a queue."""
        lane = self._lane(name, now)
        return self._configure(lane, replace(lane.queue, state=state), now)

    def create_task(self, task: Task, now: Instant, *, lost: bool = False) -> Task:
        """Add a task; `lost` takes its name and forgets it, as a fault."""
        lane = self.check_new(task.name, now)
        self._held.pop(task.name, None)
        if lost:
            self._ended(task.name, now)
        else:
            lane.add(task)
            self._record(task.name, task)
        return task

    def check_new(self, name: str, now: Instant) -> Lane:
        """Return the queue that would take a task of this name; raise where it would not."""
        lane = self._lane(names.parent_of(name), now, creating=True)
        if name in lane.tasks:
            raise CallRefusedError(Code.ALREADY_EXISTS, "Requested entity already exists")
        if _taken(self._held, name, now):
            raise CallRefusedError(
                Code.ALREADY_EXISTS,
                "The task cannot be created because a task with this name existed too recently.",
            )
        return lane

    def task(self, name: str, now: Instant) -> Task:
        return self._lane_of(name, now).tasks[name]

    def tasks(self, queue: str, now: Instant) -> list[Task]:
        """Return the tasks of a queue by name."""
        return sorted(self._lane(queue, now).tasks.values(), key=lambda task: task.name)

    def delete_task(self, name: str, now: Instant) -> None:
        """Delete a task, even while it runs."""
        self._lane_of(name, now).end(name, now)

    def run_task(self, name: str, now: Instant) -> tuple[Task, Dispatch]:
        """Begin an attempt at once, past pause, rate and concurrency; for debugging."""
        lane = self._lane_of(name, now)
        dispatch = lane.force(name, now)
        return lane.tasks[name], dispatch

    def dispatch(
        self, now: Instant, *, newest: Callable[[], bool] = lambda: False
    ) -> list[Dispatch]:
        """Begin every attempt that may begin now.

        `newest` is asked once for each, whether it is to be the one that waited shortest.
        """
        begun: list[Dispatch] = []
        for lane in self._lanes.values():
            while (one := lane.dispatch(now, newest)) is not None:
                begun.append(one)
        return begun

    def settle(self, dispatch: Dispatch, answer: Answer, now: Instant) -> None:
        """Note the answer to an attempt; one that is not awaited any more changes nothing."""
        lane = self._lanes.get(dispatch.queue)
        if lane is not None:
            lane.settle(dispatch.number, answer, now)

    def overdue(self, now: Instant) -> list[Dispatch]:
        """Return the attempts whose deadline has passed, to be cut and settled."""
        return [one for lane in self._lanes.values() for one in lane.overdue(now)]

    def next_event(self, now: Instant) -> Instant | None:
        """Return when `dispatch` or `overdue` will have something; None: not by itself."""
        moments = (lane.next_event(now) for lane in self._lanes.values())
        return min((one for one in moments if one is not None), default=None)

    def _open(self, queue: Queue, now: Instant) -> None:
        self._lanes[queue.name] = Lane(
            queue,
            now,
            self._numbers,
            kept=lambda task: self._record(task.name, task),
            ended=self._ended,
        )

    def _configure(self, lane: Lane, queue: Queue, now: Instant) -> Queue:
        lane.configure(queue, now)
        self._record(queue.name, queue)
        return queue

    def _lane(self, name: str, now: Instant, *, creating: bool = False) -> Lane:
        lane = self._lanes.get(name)
        if lane is not None:
            return lane
        if creating and _taken(self._held_queues, name, now):
            raise CallRefusedError(
                Code.FAILED_PRECONDITION,
                "The queue no longer exists, though a queue with this name existed recently.",
            )
        raise CallRefusedError(Code.NOT_FOUND, "Queue does not exist.")

    def _lane_of(self, task: str, now: Instant) -> Lane:
        lane = self._lane(names.parent_of(task), now)
        if task not in lane.tasks:
            recently = " It existed recently." if _taken(self._held, task, now) else ""
            raise CallRefusedError(Code.NOT_FOUND, f"The task does not exist.{recently}")
        return lane

    def _ended(self, name: str, now: Instant) -> None:
        self._hold(self._held, name, Instant(now + limits.TASK_NAME_HELD), now)

    def _hold(self, held: dict[str, Instant], name: str, until: Instant, now: Instant) -> None:
        """Hold a name; what is held no more, oldest first, is forgotten."""
        for other, end in list(itertools.islice(held.items(), 2)):
            if end <= now:
                del held[other]
                self._record(other, None)
        held[name] = until
        self._record(name, until)


def _taken(held: dict[str, Instant], name: str, now: Instant) -> bool:
    return held.get(name, now) > now
