"""What a probe brings home: facts, that there is nothing, or a code for why it could not look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias, TypeVar

from listen_finalization.operate.schema import Field, Index

T = TypeVar("T")


class Blind(StrEnum):
    """Why a probe could not look."""

    FORBIDDEN = "forbidden"
    API_DISABLED = "api_disabled"
    NO_CREDENTIALS = "no_credentials"
    NOT_OFFERED = "not_offered"
    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed_out"
    ODD_ANSWER = "odd_answer"
    EXTRA_MISSING = "extra_missing"


@dataclass(frozen=True, slots=True)
class Unseen:
    """The probe could not look."""

    why: Blind


@dataclass(frozen=True, slots=True)
class Missing:
    """The probe looked, and there is no such thing."""


Look: TypeAlias = T | Missing | Unseen


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """A live queue; seconds may have decimals, `retry_seconds` 0 is no limit."""

    running: bool
    max_attempts: int
    max_concurrent: int
    max_rate: float
    min_backoff: float
    max_backoff: float
    max_doublings: int
    retry_seconds: float


@dataclass(frozen=True, slots=True)
class Policy:
    """Who has which role on one resource, by unconditional bindings of its own."""

    grants: frozenset[tuple[str, str]]

    def lacks(self, role: str, email: str) -> bool:
        """Whether the service account does not have the role here."""
        return (role, f"serviceAccount:{email}") not in self.grants


@dataclass(frozen=True, slots=True)
class Rights:
    """The policy of a resource, and the project's where it could be read."""

    own: Policy
    project: Policy | None


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    """A live Cloud Run service. `audience` is what its environment expects of task tokens."""

    ingress: str
    invoker_check: bool
    account: str
    timeout_seconds: float
    urls: frozenset[str]
    audience: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer; `ours` is whether it came from an application, not from a front end."""

    status: int
    ours: bool


@dataclass(frozen=True, slots=True)
class HandlerFacts:
    """What the handler URL answers without a token, and with one that is none."""

    bare: Answer
    junk: Answer


@dataclass(frozen=True, slots=True)
class ServerTime:
    """A server's clock between two readings of ours; all in epoch seconds.

    The server's time lay between `earliest` and `latest` when it answered.
    """

    earliest: float
    latest: float
    before: float
    after: float

    @property
    def offset(self) -> float:
        """By how many seconds this machine is at least ahead; below zero: behind."""
        if self.before > self.latest:
            return self.before - self.latest
        return min(self.after - self.earliest, 0.0)


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """How the fetch of a key document ended, and how many usable keys it held."""

    ended: str
    keys: int


@dataclass(frozen=True, slots=True)
class LockFacts:
    """Whether the run lock's server answered, and else why not: a code of the run lock."""

    answered: bool
    trouble: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All that was looked at."""

    queue: Look[QueueFacts]
    queue_policy: Look[Policy]
    invoker_policy: Look[Policy]
    project_policy: Look[Policy]
    worker: Look[ServiceFacts]
    worker_policy: Look[Policy]
    indexes: Look[Mapping[Index, str]]
    fields: Look[Mapping[tuple[str, str], Field]]
    store: Look[ServerTime]
    handler: Look[HandlerFacts]
    task_keys: Look[KeyFacts]
    user_keys: Look[KeyFacts]
    clock: Look[ServerTime]
    run_lock: Look[LockFacts]

    def rights(self, own: Look[Policy]) -> Look[Rights]:
        """Return a resource's policy together with the project's."""
        if not isinstance(own, Policy):
            return own
        return Rights(own, self.project_policy if isinstance(self.project_policy, Policy) else None)

    @property
    def time(self) -> Look[ServerTime]:
        """The store's clock, which decides; where it cannot be read, that of a key server."""
        return self.store if isinstance(self.store, ServerTime) else self.clock
