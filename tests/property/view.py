"""One step as the invariants see it, and the words of the contract that they share.

Nothing here uses `guards`: an invariant that asked a guard could not miss it.
"""

from __future__ import annotations

from listen_finalization.domain import commands as c
from listen_finalization.domain.codes import (
    ConversationStatus,
    EffectState,
    Status,
    Step,
    Verb,
)
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import Answer, Decision
from listen_finalization.domain.job import Claim, Job
from listen_finalization.domain.policy import Policy

from .orders import NOW


class StepView:
    """One command and its answer; `before` is the row that it wrote (refused: met).

    `closing` is the conversation after the step, `opening` before it; `present` the row that
    the conversation named before. `moved` is the row before and after, where both exist and it
    was written; `did` the verb of a changing decision; `wrote` whether anything was written.
    """

    __slots__ = (
        "answer",
        "before",
        "closing",
        "command",
        "decision",
        "did",
        "moved",
        "opening",
        "policy",
        "present",
        "wrote",
    )

    def __init__(
        self,
        command: c.Command,
        answer: Answer,
        before: Job | None,
        closing: Conversation | None,
        opening: Conversation | None,
        policy: Policy,
        *,
        present: Job | None = None,
    ) -> None:
        self.command, self.answer, self.before = command, answer, before
        self.closing, self.opening, self.policy, self.present = closing, opening, policy, present
        self.decision: Decision | None = answer if isinstance(answer, Decision) else None
        self.moved: tuple[Job, Job] | None = None
        self.did: Verb | None = None
        self.wrote = False
        decision = self.decision
        if decision is None:
            return
        self.did = decision.did if decision.changed else None
        self.wrote = decision.changed or any((decision.conversation, decision.successor))
        if decision.changed and decision.job is not None and before is not None:
            self.moved = (before, decision.job)


def ours(conversation: Conversation | None, job: Job) -> bool:
    """Contract 4: exists, not deleted, not discarded, processing, names this job and revision."""
    return (
        conversation is not None
        and (conversation.uid, conversation.conversation_id) == (job.uid, job.conversation_id)
        and conversation.status is ConversationStatus.PROCESSING
        and not (conversation.deleted or conversation.discarded)
        and (conversation.job_id, conversation.revision) == (job.job_id, job.finalization_revision)
    )


def owns(job: Job | None, claim: Claim | None) -> bool:
    """Contract 4: leased, and generation, epoch and claim id all equal."""
    if job is None or claim is None or job.status is not Status.LEASED:
        return False
    row = (job.job_id, job.dispatch_generation, job.lease_epoch, job.claim_id)
    return row == (claim.job_id, claim.generation, claim.epoch, claim.claim_id)


def held(job: Job, dead_claim: str | None = None) -> bool:
    """Whether a lease stands that nobody but its owner may touch."""
    end = job.lease_expires_at
    return end is not None and end > NOW and (dead_claim is None or job.claim_id != dead_claim)


def final(job: Job, step: Step) -> bool:
    """Whether a step's ledger line is final."""
    return any(
        e.step is step and e.state in (EffectState.DONE, EffectState.DROPPED) for e in job.effects
    )


def record_stored(job: Job) -> bool:
    """Whether all that the user reads is stored."""
    return final(job, Step.ENRICH) and final(job, Step.MEMORIES)


def reattached(view: StepView) -> bool:
    """Whether an admission took over a row that stood open already."""
    return view.did is Verb.ADMIT and view.before is not None


def claimed(view: StepView) -> bool:
    """Whether the step granted a lease."""
    answer = view.decision
    return (
        isinstance(view.command, c.ClaimJob)
        and view.did is Verb.CLAIM
        and answer is not None
        and answer.job is not None
        and answer.job.status is Status.LEASED
    )
