"""What the suite needs of the store under test, and the shapes that its checks share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from listen_finalization.domain.codes import Actor, RefusalCode, Status, Verb
from listen_finalization.domain.commands import Admit, ClaimJob, Command
from listen_finalization.domain.content import Segment
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import Answer, Decision, Refused
from listen_finalization.domain.job import HistoryEntry, Instant, Job, seconds
from listen_finalization.domain.policy import Policy
from listen_finalization.ports import Conversations, Outbox, Record, Records

POLICY = Policy(
    lease=seconds(15),
    max_attempts=3,
    handover=seconds(30),
    handover_limit=seconds(3_600),
    retry_floor=seconds(5),
    backoff=seconds(10),
    backoff_limit=seconds(60),
    session_limit=seconds(120),
    environment_release_limit=3,
    resend_limit=seconds(60),
    abandon_after=seconds(7_200),
    retention=seconds(86_400),
)
"""The policy with which the store under test is made."""

UID = "user"
CONVERSATION = "conversation"


class Subject(Protocol):
    """A store under test; its data belongs to one check alone.

    The last five members stand for what others do to the data behind the ports: the application,
    a newer version of this product, a damaged disk. Field names are those of contract 3.
    """

    @property
    def outbox(self) -> Outbox: ...

    @property
    def conversations(self) -> Conversations: ...

    @property
    def records(self) -> Records: ...

    def advance(self, micros: int) -> None:
        """Step the store's clock forward."""
        ...

    async def restart(self) -> None:
        """Close the store and open it again, as a new process would."""
        ...

    async def set_job(self, job_id: str, fields: Mapping[str, Any]) -> None: ...

    async def set_conversation(
        self, uid: str, conversation_id: str, fields: Mapping[str, Any]
    ) -> None: ...

    async def conversation_fields(self, uid: str, conversation_id: str) -> Mapping[str, Any]: ...

    async def remove_conversation(self, uid: str, conversation_id: str) -> None: ...

    async def job_count(self) -> int: ...


Check = Callable[[Subject], Awaitable[None]]
T = TypeVar("T")


def segment(number: int = 1, text: str = "We ship on Friday.", *, start: float = 0.0) -> Segment:
    return Segment(f"segment-{number}", "speaker-0", start, start + 1.0, text)


async def talk(
    subject: Subject,
    conversation_id: str = CONVERSATION,
    *,
    byok: bool = False,
    number: int = 1,
    uid: str = UID,
) -> int:
    """Store one segment with words."""
    return await subject.conversations.append(uid, conversation_id, [segment(number)], byok=byok)


def admit(conversation_id: str = CONVERSATION, **fields: Any) -> Admit:
    return Admit(fields.pop("uid", UID), conversation_id, **fields)


async def decided(subject: Subject, command: Command) -> Decision:
    answer = await subject.outbox.apply(command)
    assert isinstance(answer, Decision), answer
    return answer


async def moved(subject: Subject, command: Command) -> Job:
    """Apply a command that must change its row, and return the row after."""
    decision = await decided(subject, command)
    assert decision.changed
    return held(decision.job)


async def admitted(
    subject: Subject, conversation_id: str = CONVERSATION, *, byok: bool = False, **fields: Any
) -> Job:
    """Store content and admit it."""
    await talk(subject, conversation_id, byok=byok)
    return await moved(subject, admit(conversation_id, **fields))


def claim_of(job: Job, claim_id: str = "claim-1", **fields: Any) -> ClaimJob:
    return ClaimJob(job.job_id, job.dispatch_generation, claim_id, **fields)


async def leased(
    subject: Subject, conversation_id: str = CONVERSATION, claim_id: str = "claim-1"
) -> Job:
    """Admit and claim."""
    job = await admitted(subject, conversation_id)
    return await moved(subject, claim_of(job, claim_id))


async def reclaimed(subject: Subject, job: Job, claim_id: str) -> Job:
    """Wait until the row may be taken, and take it."""
    subject.advance(POLICY.backoff_limit * 2)
    return await moved(subject, claim_of(job, claim_id, holds_keys=job.requires_byok))


def held(value: T | None) -> T:
    assert value is not None
    return value


async def row(subject: Subject, job_id: str) -> Job:
    return held(await subject.outbox.get(job_id))


async def record(subject: Subject, conversation_id: str = CONVERSATION) -> Record:
    return held(await subject.conversations.find(UID, conversation_id))


async def conversation(subject: Subject, conversation_id: str = CONVERSATION) -> Conversation:
    return (await record(subject, conversation_id)).conversation


def line(before: Job, after: Job, verb: Verb, actor: Actor, **fields: Any) -> HistoryEntry:
    """Return the history line of a transition from `before` to `after`."""
    return HistoryEntry(
        after.updated_at,
        verb,
        before.status,
        after.status,
        after.dispatch_generation,
        after.lease_epoch,
        actor,
        **fields,
    )


async def becomes(
    subject: Subject,
    before: Job,
    command: Command,
    verb: Verb,
    actor: Actor,
    *,
    code: Any = None,
    **changes: Any,
) -> Job:
    """Assert the whole row after a transition, as answered and as stored, and its repeat.

    `changes` are the fields that differ from `before`; an `int` under a name of a time is what is
    added to the transition's own instant. Terminal and blocked rows lose lease and due time.
    """
    after = await moved(subject, command)
    expected = _expected(before, after, verb, actor, code, changes)
    assert after == expected
    assert await row(subject, after.job_id) == expected
    await repeats(subject, command, after)
    return after


_TIMES = frozenset(
    {"reconcile_after_at", "lease_expires_at", "leased_at", "dispatched_at", "completed_at"}
)


def _expected(
    before: Job, after: Job, verb: Verb, actor: Actor, code: Any, changes: Mapping[str, Any]
) -> Job:
    now = after.updated_at
    fields = {k: now + v if k in _TIMES and v is not None else v for k, v in changes.items()}
    status = fields.get("status", before.status)
    if status is not Status.LEASED:
        fields.update(leased_at=None, lease_expires_at=None)
    if status.terminal or status is Status.BLOCKED_BYOK:
        fields["reconcile_after_at"] = None
    entry = line(before, replace(before, **(fields | {"updated_at": now})), verb, actor, code=code)
    fields["history"] = _appended(before, entry)
    return replace(before, updated_at=now, **fields)


def _appended(before: Job, entry: HistoryEntry) -> tuple[HistoryEntry, ...]:
    """Append the entry, folded into an equal neighbour."""
    *older, last = before.history
    if last.same_kind(entry):
        return (*older, replace(entry, count=last.count + 1))
    return (*before.history, entry)


async def repeats(subject: Subject, command: Command, after: Job) -> None:
    """Send the same command again, at once and after a restart: same row, nothing written."""
    for _ in range(2):
        subject.advance(1)
        answer = await subject.outbox.apply(command)
        assert answer.job == after
        assert isinstance(answer, Decision)
        assert not answer.changed
        assert await row(subject, after.job_id) == after
        await subject.restart()


async def refused(
    subject: Subject, command: Command, code: RefusalCode, *, job: Job | None = None
) -> None:
    """Assert a coded refusal that leaves row and conversation as they were."""
    before = await row(subject, job.job_id) if job is not None else None
    named = await subject.conversations.find(UID, CONVERSATION)
    answer = await subject.outbox.apply(command)
    assert isinstance(answer, Refused), answer
    assert answer.code is code
    if job is not None:
        assert answer.job == before
        assert await row(subject, job.job_id) == before
    assert await subject.conversations.find(UID, CONVERSATION) == named


def job_of(answer: Answer) -> Job:
    return held(answer.job)


def later(instant: Instant | None, micros: int) -> Instant:
    return Instant(held(instant) + micros)
