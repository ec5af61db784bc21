"""Who may move a job: steps that break contract 4, 6 and 9. True is a violation."""

from __future__ import annotations

from listen_finalization.domain import commands as c
from listen_finalization.domain.codes import Status, Step, Verb
from listen_finalization.domain.table import TABLE

from .orders import NOW
from .view import StepView, claimed, held, ours, owns, reattached


def generation_and_epoch_never_fall(view: StepView) -> bool:
    if view.moved is None:
        return False
    before, after = view.moved
    fell = (
        after.dispatch_generation < before.dispatch_generation
        or after.lease_epoch < before.lease_epoch
    )
    same = (before.job_id, before.finalization_revision, before.created_at)
    return fell or same != (after.job_id, after.finalization_revision, after.created_at)


def transition_is_in_table(view: StepView) -> bool:
    answer = view.decision
    if answer is None or not answer.changed:
        return False
    before = view.before.status if view.before is not None else None
    after = answer.job.status if answer.job is not None else None
    row = TABLE[answer.did]
    return before not in row.sources or after not in row.targets


def did_what_was_asked_or_fenced(view: StepView) -> bool:
    if view.did is None or view.did is Verb.FENCE:
        return False
    if isinstance(view.command, c.Release) and view.did is Verb.FAIL:
        return False
    return view.did is not c.verb_of(view.command)


def stale_owner_changes_nothing(view: StepView) -> bool:
    if not isinstance(view.command, c.Checkpoint | c.Complete | c.Fail | c.Release):
        return False
    return view.wrote and not owns(view.before, view.command.claim)


def stale_generation_changes_nothing(view: StepView) -> bool:
    command = view.command
    if not isinstance(
        command, c.ClaimJob | c.Park | c.Redispatch | c.Postpone | c.Evict | c.Replay
    ):
        return False
    if not view.wrote or view.before is None:
        return view.wrote
    return command.generation != view.before.dispatch_generation


def evict_takes_only_the_lease_shown(view: StepView) -> bool:
    command = view.command
    if not isinstance(command, c.Evict) or view.moved is None:
        return False
    return view.moved[0].lease_epoch != command.epoch


def used_claim_id_never_claims_again(view: StepView) -> bool:
    if not isinstance(view.command, c.ClaimJob) or not view.wrote or view.before is None:
        return False
    return view.command.claim_id == view.before.claim_id


def claim_for_another_conversation_changes_nothing(view: StepView) -> bool:
    command = view.command
    if not isinstance(command, c.ClaimJob | c.PresentKeys) or view.before is None:
        return False
    believed = (command.uid, command.conversation_id)
    return view.wrote and believed != (view.before.uid, view.before.conversation_id)


def live_lease_is_never_taken(view: StepView) -> bool:
    if view.before is None or not view.wrote:
        return False
    command = view.command
    if isinstance(command, c.Checkpoint | c.Complete | c.Fail | c.Release | c.Evict | c.Purge):
        return False
    if isinstance(command, c.Fence) and owns(view.before, command.claim):
        return False
    if isinstance(command, c.Admit):
        taken = view.did is not None and held(view.before)
        return taken and ours(view.opening, view.before)
    return held(view.before, getattr(command, "dead_claim", None))


def claim_opens_a_lease_of_its_own(view: StepView) -> bool:
    if view.moved is None or view.did is not Verb.CLAIM:
        return False
    before, after = view.moved
    if after.status is not Status.LEASED or not isinstance(view.command, c.ClaimJob):
        return False
    return (
        after.lease_epoch != before.lease_epoch + 1
        or after.claim_id != view.command.claim_id
        or after.lease_expires_at != NOW + view.policy.lease
        or after.reconcile_after_at != after.lease_expires_at
        or after.handovers != 0
        or after.attempt_count != before.attempt_count + 1
        or after.dispatch_generation != before.dispatch_generation
    )


def byok_runs_only_with_keys(view: StepView) -> bool:
    return claimed(view) and not _keys(view) and bool(view.before and view.before.requires_byok)


def marked_content_is_read_only_with_keys(view: StepView) -> bool:
    if not claimed(view) or _keys(view) or view.opening is None:
        return False
    return view.opening.requires_byok


def _keys(view: StepView) -> bool:
    return isinstance(view.command, c.ClaimJob) and view.command.holds_keys


def claim_reads_the_content_that_it_notes(view: StepView) -> bool:
    if not claimed(view) or view.moved is None or view.opening is None:
        return False
    before, after = view.moved
    results = any(e.step is not Step.FANOUT for e in before.effects)
    kept = results and before.content_version is not None
    expected = before.content_version if kept else view.opening.content_version
    return after.content_version != expected


def only_our_conversation_is_written(view: StepView) -> bool:
    """Also its content: results, memories and the published record."""
    answer = view.decision
    if answer is None or isinstance(view.command, c.Admit | c.Replay):
        return False
    content = answer.publish or bool(answer.results) or bool(answer.memories)
    if answer.conversation is None and answer.successor is None and not content:
        return False
    return view.before is None or not ours(view.opening, view.before)


def content_is_written_only_by_the_owner(view: StepView) -> bool:
    answer = view.decision
    if answer is None or not (answer.results or answer.memories):
        return False
    return not isinstance(view.command, c.Checkpoint) or not owns(view.before, view.command.claim)


def granted_checkpoint_stores_what_it_carries(view: StepView) -> bool:
    answer, command = view.decision, view.command
    if answer is None or not isinstance(command, c.Checkpoint) or view.before is None:
        return False
    if answer.did is not Verb.CHECKPOINT or not command.results:
        return False
    return answer.results != command.results


def job_of_a_foreign_conversation_is_fenced(view: StepView) -> bool:
    """Contract 4. An empty checkpoint and a moved due time prove nothing and may go on."""
    if view.moved is None or view.before is None or view.before.status.terminal:
        return False
    if ours(view.opening, view.before) or view.did is Verb.FENCE or reattached(view):
        return False
    renewal = isinstance(view.command, c.Checkpoint) and not (
        view.command.effects or view.command.results or view.command.memories
    )
    return not renewal and view.did is not Verb.POSTPONE


def our_conversation_is_never_fenced(view: StepView) -> bool:
    return view.did is Verb.FENCE and bool(view.before and ours(view.opening, view.before))


def fence_leaves_the_conversation_alone(view: StepView) -> bool:
    return view.did is Verb.FENCE and view.opening != view.closing
