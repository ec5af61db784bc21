"""What the queue engine keeps, as values: queues, tasks, attempts; durations are microseconds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from listen_finalization.domain.job import Instant
from listen_finalization.testing.cloud_tasks import limits


class QueueState(StrEnum):
    """Whether a queue dispatches."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"


class Ending(StrEnum):
    """How an attempt ended that did not succeed."""

    HTTP_STATUS = "http_status"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class RateLimits:
    """How fast, and how many at once, a queue dispatches."""

    rate: float = limits.DEFAULT_RATE
    concurrent: int = limits.DEFAULT_CONCURRENT

    @property
    def burst(self) -> int:
        """The size of the token bucket: "at least equal" to the rate (reference, RateLimits)."""
        return max(1, math.ceil(self.rate))


@dataclass(frozen=True, slots=True)
class RetryConfig:
    """When a failed task is tried again; -1 attempts and a `max_duration` of 0 have no limit."""

    max_attempts: int = limits.DEFAULT_ATTEMPTS
    max_duration: int = 0
    least_backoff: int = limits.DEFAULT_LEAST_BACKOFF
    most_backoff: int = limits.DEFAULT_MOST_BACKOFF
    max_doublings: int = limits.DEFAULT_DOUBLINGS

    def delay(self, failures: int) -> int:
        """Return the wait after the given failure, counted from 1.

        It doubles `max_doublings` times, then grows by the last doubled wait, up to the most
        (reference, RetryConfig: 10, 20, 40, 80, 160, 240, 300, 300 s for 10 s, 300 s and 3).
        """
        doublings = min(failures - 1, self.max_doublings, 62)
        linear = max(failures - 1 - self.max_doublings, 0)
        wait = (self.least_backoff << doublings) * (1 + linear)
        return min(wait, self.most_backoff)

    def exhausted(self, attempts: int, elapsed: int) -> bool:
        """Whether no attempt is left, `elapsed` after the first one began.

        Of two limits that are both set, both must be reached (reference, RetryConfig).
        """
        spent = attempts >= self.max_attempts
        over = elapsed >= self.max_duration
        if self.max_attempts < 0:
            return self.max_duration > 0 and over
        return spent and (self.max_duration == 0 or over)


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue as its owner sees it."""

    name: str
    rates: RateLimits = RateLimits()
    retry: RetryConfig = RetryConfig()
    state: QueueState = QueueState.RUNNING
    purged: Instant | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """The request that a task makes; `email` and `audience` ask for an OIDC token."""

    url: str = field(repr=False)
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    email: str | None = field(default=None, repr=False)
    audience: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt; without `answered` it runs, with neither `status` nor `ending` it succeeded."""

    scheduled: Instant
    dispatched: Instant
    answered: Instant | None = None
    status: int | None = None
    ending: Ending | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One task; it is not dispatched before `ready`, which a fault moves behind its schedule."""

    name: str
    target: Target
    created: Instant
    schedule: Instant
    ready: Instant
    deadline: int = limits.DEFAULT_DEADLINE
    retry: RetryConfig | None = None
    dispatches: int = 0
    responses: int = 0
    first: Attempt | None = None
    last: Attempt | None = None


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One attempt that is under way: what to send, and until when to wait for the answer.

    `task` is the task before this attempt was counted, which is what the headers tell.
    """

    number: int
    task: Task
    queue: str
    began: Instant
    expires: Instant
    forced: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one attempt: an HTTP status, or why there is none."""

    status: int | None = None
    ending: Ending | None = None

    @property
    def succeeded(self) -> bool:
        """Any 2xx is success (reference, HttpRequest); a redirect is none and is not followed."""
        return self.status is not None and 200 <= self.status < 300
