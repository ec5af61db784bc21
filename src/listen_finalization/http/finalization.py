"""Where a conversation's finalization stands, told so that job and conversation agree."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from listen_finalization.domain.codes import ConversationStatus, Outcome, Status
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.job import Instant, Job
from listen_finalization.http.problems import Kind
from listen_finalization.ports import Outbox


class Standing(StrEnum):
    """The statuses of a job, and `unowned`: processing, but no live job; a sweep takes it up."""

    QUEUED = "queued"
    LEASED = "leased"
    COMPLETED = "completed"
    DEAD_LETTER = "dead_letter"
    BLOCKED_BYOK = "blocked_byok"
    UNOWNED = "unowned"


_TERMINAL = frozenset({Standing.COMPLETED, Standing.DEAD_LETTER})
_POLL_AFTER = {
    Standing.QUEUED: 2,
    Standing.LEASED: 2,
    Standing.BLOCKED_BYOK: 60,
    Standing.UNOWNED: 60,
}
_POLL_AFTER_FAILURE = 10


@dataclass(frozen=True, slots=True)
class Finalization:
    """One answer. `job` is None where the conversation alone tells how it ended."""

    conversation: Conversation
    standing: Standing
    job: Job | None = None

    @property
    def job_id(self) -> str | None:
        return self.conversation.job_id

    @property
    def terminal(self) -> bool:
        return self.standing in _TERMINAL

    @property
    def retryable(self) -> bool:
        return self.standing is Standing.QUEUED

    @property
    def outcome(self) -> Outcome | None:
        if self.job is not None:
            return self.job.outcome
        return _OUTCOMES.get(self.conversation.status) if self.terminal else None

    @property
    def next_attempt_at(self) -> Instant | None:
        """When the job is taken up at the latest; a queue may deliver it before."""
        if self.job is None or not self.retryable or self.job.requires_byok:
            return None
        return self.job.reconcile_after_at

    @property
    def poll_after(self) -> int | None:
        """Seconds after which asking again is worth it; None once nothing will change."""
        failed_before = self.job is not None and self.job.failure_code is not None
        if self.retryable and failed_before:
            return _POLL_AFTER_FAILURE
        return _POLL_AFTER.get(self.standing)


_OUTCOMES = {
    ConversationStatus.COMPLETED: Outcome.SUCCESS,
    ConversationStatus.FAILED: Outcome.FAILED,
}


class Finalizations:
    """Reads a conversation and its job in one snapshot, so that they agree."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    async def read(self, uid: str, conversation_id: str) -> Finalization | Kind:
        """Return the finalization, or the problem that there is none. Raises `StoreError`."""
        found = await self._outbox.find(uid, conversation_id)
        if found is None or found[0].deleted:
            return Kind.CONVERSATION_NOT_FOUND
        return told(*found)


def told(conversation: Conversation, job: Job | None) -> Finalization | Kind:
    """Say how a conversation and the job that it names stand together."""
    if job is not None and _agree(conversation, job):
        return Finalization(conversation, Standing(job.status), job)
    if ended(conversation):
        buried = conversation.status is ConversationStatus.FAILED
        return Finalization(conversation, Standing.DEAD_LETTER if buried else Standing.COMPLETED)
    if conversation.status is ConversationStatus.PROCESSING:
        return Finalization(conversation, Standing.UNOWNED)
    return Kind.NOT_FINALIZED


def ended(conversation: Conversation) -> bool:
    """Whether nothing more happens to the conversation by itself."""
    over = (ConversationStatus.COMPLETED, ConversationStatus.FAILED)
    return conversation.discarded or conversation.status in over


def _agree(conversation: Conversation, job: Job) -> bool:
    """Whether the job is where the conversation's status says it must be."""
    if ended(conversation):
        buried = conversation.status is ConversationStatus.FAILED
        return job.terminal and (job.status is Status.DEAD_LETTER) is buried
    if conversation.status is ConversationStatus.PROCESSING:
        return not job.terminal
    return conversation.status is ConversationStatus.OTHER and job.terminal
