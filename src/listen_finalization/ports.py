"""What the services need of the outside, named by need; adapters live in packages of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from listen_finalization.domain.codes import Status, Step
from listen_finalization.domain.commands import ClaimJob, Command
from listen_finalization.domain.content import Content, Memory, Segment
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import Answer, Refused
from listen_finalization.domain.job import Instant, Job


@dataclass(frozen=True, slots=True)
class DueRow:
    """A row that somebody may take now, as the due query saw it.

    `status` is None for a word that this version does not know.
    """

    job_id: str
    generation: int
    status: Status | None
    requires_byok: bool
    handovers: int
    due: Instant
    claim_id: str | None = None


@dataclass(frozen=True, slots=True)
class DuePage:
    """Due rows, oldest first; `next_due` is when the next row that is not due yet will be."""

    rows: tuple[DueRow, ...]
    now: Instant
    next_due: Instant | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs, newest first; `cursor` continues the list and is None at its end.

    `unreadable` are the ids of rows in this stretch that this version cannot decode.
    """

    jobs: tuple[Job, ...]
    cursor: str | None = None
    unreadable: tuple[str, ...] = ()


class Outbox(Protocol):
    """The durable owner of every job.

    All methods raise `errors.StoreError` (one class per trouble) and nothing else. None of them
    takes a time: `now` is the store's own.
    """

    async def apply(self, command: Command) -> Answer:
        """Decide the command and write its decision, in one transaction, durable on return.

        A raised error means that nothing is known to be written: send the same command again.
        """
        ...

    async def get(self, job_id: str) -> Job | None:
        """Return the row as last committed. Raises `RowUnreadableError` where it cannot decode."""
        ...

    async def find(self, uid: str, conversation_id: str) -> tuple[Conversation, Job | None] | None:
        """Return a conversation and the job that it names, both of one snapshot.

        None where there is no conversation; deleted ones are told. Raises `RowUnreadableError`.
        """
        ...

    async def due(self, limit: int, *, after: DueRow | None = None) -> DuePage:
        """Return at most `limit` due rows, oldest first, from behind the row `after`.

        The cost does not depend on terminal rows.
        """
        ...

    async def leases(self, limit: int) -> tuple[DueRow, ...]:
        """Return at most `limit` leased rows, oldest lease end first."""
        ...

    async def list(
        self, *, status: Status | None = None, limit: int = 50, cursor: str | None = None
    ) -> JobPage:
        """Return jobs by creation, newest first. `limit` is 1 to 500."""
        ...

    async def counts(self) -> Mapping[Status, int]:
        """Count every status but `completed`; the cost does not depend on completed rows."""
        ...

    async def oldest(self) -> Mapping[Status, Instant]:
        """Return the creation time of the oldest row of each non-terminal status that has one."""
        ...

    async def set_aside(self, job_id: str, seen_due: Instant, delay: int) -> bool:
        """Move the due time of a row that cannot be decoded, if it is still `seen_due`."""
        ...


@dataclass(frozen=True, slots=True)
class Record:
    """A conversation as its owner reads it: what decides, and what the product wrote."""

    conversation: Conversation
    structured: Mapping[str, Any] | None = field(default=None, repr=False)
    memories: tuple[Memory, ...] = field(default=(), repr=False)


class Conversations(Protocol):
    """The application's conversations, as far as this product reads and writes them."""

    async def append(
        self,
        uid: str,
        conversation_id: str,
        segments: Sequence[Segment],
        *,
        language: str = "en",
        photos: int = 0,
        byok: bool = False,
    ) -> int:
        """Store segments by id and return the content version; an equal repeat does not raise it.

        Creates the conversation (`in_progress`) where there is none; `photos` counts new ones and
        `byok` marks the conversation. Raises `ConversationClosedError` for a deleted or
        discarded one.
        """
        ...

    async def find(self, uid: str, conversation_id: str) -> Record | None:
        """Return the conversation with its record; None where absent. Deleted ones are told."""
        ...

    async def content(self, uid: str, conversation_id: str) -> Content | None:
        """Return what a run reads; None where absent."""
        ...

    async def results(self, job_id: str) -> Mapping[tuple[Step, int], str]:
        """Return the stored step results (JSON text) of an open job by step and chunk."""
        ...

    async def delete(self, uid: str, conversation_id: str) -> bool:
        """Mark the conversation deleted; False where there was none."""
        ...


@dataclass(frozen=True, slots=True)
class Row:
    """One record of ours; `version` is what a `put` must name to replace it."""

    key: str
    value: Mapping[str, Any] = field(repr=False)
    version: int


class Records(Protocol):
    """Small named rows of the product itself: destinations, flags, cursors, stamps, audit."""

    async def get(self, kind: str, key: str) -> Row | None: ...

    async def put_if(
        self, kind: str, key: str, value: Mapping[str, Any], *, version: int
    ) -> Row | None:
        """Write where the stored version is `version` (0: absent); None when it is another."""
        ...

    async def list(self, kind: str, *, prefix: str = "", limit: int = 100) -> tuple[Row, ...]:
        """Return rows by key."""
        ...

    async def delete(self, kind: str, key: str) -> bool: ...


class Store(Protocol):
    """The three ports of one database, as a composition root gets them."""

    @property
    def outbox(self) -> Outbox: ...

    @property
    def conversations(self) -> Conversations: ...

    @property
    def records(self) -> Records: ...


class Dispatcher(Protocol):
    """Hands a job over: to a queue, or to the worker of this machine."""

    async def hand_over(self, job: Job, *, delay: int = 0) -> bool:
        """Ask for a delivery of the job's present generation, `delay` microseconds from now.

        Returns whether the request is known to be taken; False is counted, never raised: the
        row keeps its due time.
        """
        ...


class Liveness(Protocol):
    """Knows whether the process behind a claim id is provably dead."""

    def dead(self, claim_id: str) -> bool: ...

    def new_claim_id(self) -> str:
        """Mint 128 bits, as 32 hex digits, whose first half names this process."""
        ...


class RunLock(Protocol):
    """Turns a second worker away before it claims: an extra guard, and never the authority."""

    def held(self, claim: ClaimJob) -> AbstractAsyncContextManager[Refused | None]:
        """Hold the job's lock under the id of a claim that is not made yet, for as long as entered.

        Enters with the `LEASE_HELD` that the claim would get where another holds the lock; else
        with None, whether the lock could be taken or not: the claim decides. Raises nothing of its
        own.
        """
        ...
