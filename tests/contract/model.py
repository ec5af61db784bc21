"""The whole outbox as two dictionaries and `decide`: what any store must be equal to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from listen_finalization.domain.codes import ConversationStatus, Step
from listen_finalization.domain.commands import Admit, Command, OwnedCommand
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import Answer, Decision, Probe, Probed
from listen_finalization.domain.identity import job_id
from listen_finalization.domain.job import Instant, Job
from listen_finalization.domain.machine import decide
from listen_finalization.domain.policy import Policy


@dataclass
class Model:
    """Applies commands to values in memory; one conversation per id, one user."""

    policy: Policy
    uid: str
    jobs: dict[str, Job] = field(default_factory=dict)
    conversations: dict[str, Conversation] = field(default_factory=dict)
    results: dict[str, dict[tuple[Step, int], str]] = field(default_factory=dict)
    published: dict[str, str] = field(default_factory=dict)

    def append(self, conversation_id: str, *, byok: bool) -> None:
        """Store content that is new."""
        held = self.conversations.get(conversation_id) or Conversation(
            self.uid, conversation_id, ConversationStatus.IN_PROGRESS, 0, has_content=False
        )
        if not held.deleted and not held.discarded:
            self.conversations[conversation_id] = replace(
                held,
                content_version=held.content_version + 1,
                has_content=True,
                requires_byok=held.requires_byok or byok,
            )

    def delete(self, conversation_id: str) -> None:
        """Mark the conversation deleted; the step results of its job go."""
        held = self.conversations.get(conversation_id)
        if held is not None:
            self.results.pop(held.job_id or "", None)
            self.conversations[conversation_id] = replace(held, deleted=True)

    def apply(self, command: Command, now: Instant) -> Answer:
        job, conversation = self._read(command)
        probed: Probed | None = None
        while True:
            answer = decide(job, conversation, command, now, self.policy, probed)
            if not isinstance(answer, Probe):
                break
            assert conversation is not None
            key = job_id(self.uid, conversation.conversation_id, answer.revision)
            probed = Probed(answer.revision, self.jobs.get(key))
        if isinstance(answer, Decision):
            self._write(answer, job)
        return answer

    def _read(self, command: Command) -> tuple[Job | None, Conversation | None]:
        if isinstance(command, Admit):
            conversation = self.conversations.get(command.conversation_id)
            named = conversation.job_id if conversation is not None else None
            return self.jobs.get(named or ""), conversation
        key = command.claim.job_id if isinstance(command, OwnedCommand) else command.job_id
        job = self.jobs.get(key)
        return job, self.conversations.get(job.conversation_id) if job is not None else None

    def _write(self, decision: Decision, read: Job | None) -> None:
        if decision.conversation is not None:
            self.conversations[decision.conversation.conversation_id] = decision.conversation
        if not decision.changed:
            return
        for row in (decision.job, decision.successor):
            if row is not None:
                self.jobs[row.job_id] = row
        owner = decision.job or read
        assert owner is not None
        if decision.job is None:
            del self.jobs[owner.job_id]
        self._write_results(decision, owner)

    def _write_results(self, decision: Decision, owner: Job) -> None:
        held = self.results.setdefault(owner.job_id, {})
        held.update({(r.step, r.chunk): r.payload for r in decision.results})
        record = held.get((Step.ENRICH, 0))
        if decision.publish and record is not None:
            self.published[owner.conversation_id] = record
        if decision.drop_results:
            held.clear()
