"""The invariants of a whole state (contract 17.1, 17.2, 17.4 and 6). True is a violation."""

from __future__ import annotations

from dataclasses import dataclass

from listen_finalization.domain.codes import ConversationStatus, Outcome, Status, Verb
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.job import Job

from .core import Core
from .orders import FENCE, REVISION_OF
from .view import held, ours
from .world import State


@dataclass(frozen=True, slots=True)
class Standing:
    """A state as the rules see it; `named` is the row that the conversation names."""

    core: Core
    state: State
    conversation: Conversation | None
    rows: dict[int, Job]
    named: Job | None

    @property
    def touched(self) -> bool:
        """Whether another lane wrote the conversation after we did."""
        return bool(self.state.ghost.touched)

    @property
    def open(self) -> list[Job]:
        return [job for job in self.rows.values() if not job.status.terminal]


def standing(core: Core, state: State) -> Standing:
    """Open a packed state."""
    rows = {r: job for r, n in enumerate(state.rows) if (job := core.jobs[n]) is not None}
    conversation = core.conversations[state.conversation]
    named = None
    if conversation is not None and conversation.job_id is not None:
        named = rows.get(REVISION_OF[conversation.job_id])
    return Standing(core, state, conversation, rows, named)


def one_row_per_revision(view: Standing) -> bool:
    return any(REVISION_OF[job.job_id] != revision for revision, job in view.rows.items())


def at_most_one_job_is_open(view: Standing) -> bool:
    return len(view.open) - len(_behind_a_gap(view)) > 1


def no_open_job_is_left_behind_a_purged_revision(view: Standing) -> bool:
    return bool(_behind_a_gap(view))


def _behind_a_gap(view: Standing) -> list[Job]:
    """Return the open rows beyond the conversation's revision; without one, beyond the first."""
    present = view.conversation.revision if view.conversation is not None else None
    first = present or min((job.finalization_revision for job in view.open), default=0)
    return [job for job in view.open if job.finalization_revision > first]


def earlier_revisions_are_terminal(view: Standing) -> bool:
    present = view.conversation.revision if view.conversation is not None else None
    if present is None or view.touched:
        return False
    return any(job.finalization_revision < present for job in view.open)


def named_job_is_terminal_exactly_when_its_conversation_is(view: Standing) -> bool:
    """Where another lane wrote last, `foreign_job_can_be_fenced` takes this rule's place."""
    seen = view.conversation
    if view.named is None or seen is None or view.touched:
        return False
    over = seen.status in (ConversationStatus.COMPLETED, ConversationStatus.FAILED)
    return view.named.status.terminal is not (over or seen.discarded or seen.deleted)


def dead_letter_shows_on_its_conversation(view: Standing) -> bool:
    seen = view.conversation
    if view.named is None or seen is None or view.touched:
        return False
    dead = view.named.status is Status.DEAD_LETTER
    return dead is not (seen.status is ConversationStatus.FAILED and seen.discarded)


def foreign_job_can_be_fenced(view: Standing) -> bool:
    """An open row whose conversation is not ours: its owner, or else anybody, ends it."""
    for job in view.open:
        if ours(view.conversation, job):
            continue
        number = int(job.claim_id[3:]) if held(job) and job.claim_id is not None else 0
        order = (
            FENCE,
            job.finalization_revision,
            job.dispatch_generation,
            job.lease_epoch,
            number,
            0,
        )
        outcome = view.core.apply(view.state.rows, view.state.conversation, order)
        if outcome.did is not Verb.FENCE:
            return True
    return False


def accepted_finalize_is_read(view: Standing) -> bool:
    """A completed conversation was read at least as far as a finalize had asked for."""
    seen, job = view.conversation, view.named
    if seen is None or job is None or view.touched:
        return False
    if seen.status is not ConversationStatus.COMPLETED or job.outcome is not Outcome.SUCCESS:
        return False
    return view.state.ghost.asked > (job.content_version or 0)


def step_results_go_with_settlement(view: Standing) -> bool:
    for revision, kept in enumerate(view.state.results):
        job = view.rows.get(revision)
        if kept and (job is None or job.status.terminal):
            return True
    return False


STATE_RULES = (
    one_row_per_revision,
    at_most_one_job_is_open,
    no_open_job_is_left_behind_a_purged_revision,
    earlier_revisions_are_terminal,
    named_job_is_terminal_exactly_when_its_conversation_is,
    dead_letter_shows_on_its_conversation,
    foreign_job_can_be_fenced,
    accepted_finalize_is_read,
    step_results_go_with_settlement,
)


def broken_in_state(core: Core, state: State) -> tuple[str, ...]:
    """Return the names of the rules that a state breaks."""
    view = standing(core, state)
    return tuple(rule.__name__ for rule in STATE_RULES if rule(view))
