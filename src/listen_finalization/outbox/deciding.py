"""The decision of a command, as a loop that asks its store for the rows that it needs."""

from __future__ import annotations

from collections.abc import Generator

from listen_finalization.domain.commands import Command
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import Answer, Probe, Probed
from listen_finalization.domain.identity import job_id
from listen_finalization.domain.job import IllegalJobError, Instant, Job
from listen_finalization.domain.machine import decide
from listen_finalization.domain.policy import Policy

Deciding = Generator[str, Job | None, tuple[Answer, Job | None]]
"""Yields the id of a row to read and takes that row; returns the answer and the last such row."""


def deciding(
    job: Job | None,
    conversation: Conversation | None,
    command: Command,
    now: Instant,
    policy: Policy,
) -> Deciding:
    """Decide, asking for the row of another revision as often as the decision depends on one."""
    probed: Probed | None = None
    while True:
        answer = decide(job, conversation, command, now, policy, probed)
        if not isinstance(answer, Probe):
            return answer, probed.job if probed else None
        if conversation is None:
            raise IllegalJobError
        key = job_id(conversation.uid, conversation.conversation_id, answer.revision)
        probed = Probed(answer.revision, (yield key))
