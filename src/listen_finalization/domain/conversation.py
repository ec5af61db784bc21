"""The few fields of a conversation that decide; what people said passes by unopened."""

from __future__ import annotations

from dataclasses import dataclass

from listen_finalization.domain.codes import ConversationStatus
from listen_finalization.domain.job import Instant, Job


@dataclass(frozen=True, slots=True)
class Conversation:
    """The decisive fields of one conversation document.

    The last seven, with `status` and `discarded`, are the ones that a decision may change; the
    store writes those and no other field.
    """

    uid: str
    conversation_id: str
    status: ConversationStatus
    content_version: int
    has_content: bool
    has_room: bool = True
    deleted: bool = False
    discarded: bool = False
    requires_byok: bool = False
    job_id: str | None = None
    revision: int | None = None
    wanted_version: int | None = None
    admitted_at: Instant | None = None

    def names(self, job: Job) -> bool:
        """Whether this conversation's present job is `job`."""
        return (
            self.job_id == job.job_id
            and self.revision == job.finalization_revision
            and self.uid == job.uid
            and self.conversation_id == job.conversation_id
        )
