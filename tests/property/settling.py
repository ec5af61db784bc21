"""Budgets, due times and endings: steps that break contract 4 to 6 and 12. True is a violation."""

from __future__ import annotations

from listen_finalization.domain import commands as c
from listen_finalization.domain.codes import (
    ConversationStatus,
    EffectCode,
    EffectState,
    Outcome,
    PurgeCause,
    RedispatchCause,
    ReleaseCause,
    Status,
    Step,
    Verb,
)

from .orders import NOW
from .view import StepView, claimed, final, ours, reattached, record_stored


def attempts_stay_within_the_budget(view: StepView) -> bool:
    if view.moved is None or not claimed(view):
        return False
    return view.moved[1].attempt_count > view.policy.max_attempts


def attempts_move_only_by_their_verbs(view: StepView) -> bool:
    """Claims of one budget = attempts + releases (contract 17.7)."""
    if view.moved is None:
        return False
    before, after = view.moved
    old, new = before.attempt_count + before.releases, after.attempt_count + after.releases
    if view.did is Verb.REPLAY or reattached(view):
        return new != 0
    if claimed(view):
        return new != old + 1 or after.releases != before.releases
    if view.did is Verb.RELEASE:
        return after.attempt_count != before.attempt_count - 1 or new != old
    return (before.attempt_count, before.releases) != (after.attempt_count, after.releases)


def final_failure_ends_the_job(view: StepView) -> bool:
    if view.did is not Verb.FAIL or view.moved is None:
        return False
    retry = getattr(view.command, "task_retry", None)
    limit = view.policy.max_attempts
    spent = view.moved[0].attempt_count >= limit or (retry is not None and retry >= limit - 1)
    return spent is not view.moved[1].status.terminal


def environment_releases_are_bounded(view: StepView) -> bool:
    command = view.command
    if not isinstance(command, c.Release) or view.did is not Verb.RELEASE or view.moved is None:
        return False
    if command.cause is not ReleaseCause.ENVIRONMENT or command.lane_paused:
        return False
    return view.moved[1].releases >= view.policy.environment_release_limit


def every_hand_over_has_its_own_generation(view: StepView) -> bool:
    if view.moved is None:
        return False
    before, after = view.moved
    minted = view.did in (Verb.PARK, Verb.REDISPATCH, Verb.EVICT, Verb.REPLAY, Verb.ADMIT)
    if isinstance(view.command, c.Release) and view.did is Verb.RELEASE:
        minted = view.command.cause is ReleaseCause.ENVIRONMENT
    expected = before.dispatch_generation + (1 if minted and not after.status.terminal else 0)
    return after.dispatch_generation != expected


def reconciler_takes_only_due_rows(view: StepView) -> bool:
    command, before = view.command, view.before
    due = isinstance(command, c.Park) or (
        isinstance(command, c.Redispatch) and command.cause is RedispatchCause.DUE
    )
    if not due or not view.wrote or before is None:
        return False
    dead = before.status is Status.LEASED and before.claim_id == getattr(
        command, "dead_claim", None
    )
    return not dead and (before.reconcile_after_at is None or before.reconcile_after_at > NOW)


def open_row_has_a_due_time_within_bounds(view: StepView) -> bool:
    answer = view.decision
    if answer is None or answer.job is None or answer.job.status.terminal:
        return False
    if answer.job.status is Status.BLOCKED_BYOK:
        return False
    due, policy = answer.job.reconcile_after_at, view.policy
    asked = getattr(view.command, "delay", 0)
    longest = max(policy.lease, policy.handover_limit, policy.retry_floor, policy.session_limit)
    if view.before is not None and view.before.reconcile_after_at == due:
        return False
    return due is None or due > NOW + 2 * longest + asked


def stored_record_is_never_buried(view: StepView) -> bool:
    """Contract 5.3: where enrich and memories are stored, the end is a completion."""
    if view.moved is None or view.moved[1].status is not Status.DEAD_LETTER:
        return False
    return record_stored(view.moved[0])


def success_needs_a_stored_record(view: StepView) -> bool:
    if view.moved is None or view.moved[1].outcome is not Outcome.SUCCESS:
        return False
    if view.did is Verb.COMPLETE or view.moved[0].terminal:
        return not final(view.moved[0], Step.ENRICH)
    return not record_stored(view.moved[0])


def complete_leaves_no_delivery_open(view: StepView) -> bool:
    if view.did is not Verb.COMPLETE or view.moved is None:
        return False
    return any(e.step is Step.FANOUT and not e.final for e in view.moved[0].effects)


def completed_job_owes_nothing(view: StepView) -> bool:
    """After any successful end every ledger line is final."""
    if view.moved is None or view.moved[1].outcome is not Outcome.SUCCESS:
        return False
    return view.did is not Verb.RESEND and any(not e.final for e in view.moved[1].effects)


def final_effect_is_never_taken_back(view: StepView) -> bool:
    """Only a resend takes a dropped delivery back, and a new budget or a new life clears all."""
    if view.moved is None or view.did is Verb.REPLAY or reattached(view):
        return False
    before, after = view.moved
    now = {(e.step, e.destination): e.state for e in after.effects}
    for effect in before.effects:
        state = now.get((effect.step, effect.destination))
        resent = view.did is Verb.RESEND and effect.state is EffectState.DROPPED
        if effect.final and state is not effect.state and not resent:
            return True
    return False


def resend_takes_only_dropped_deliveries(view: StepView) -> bool:
    command = view.command
    if not isinstance(command, c.Resend) or command.result is not None or view.moved is None:
        return False
    before = view.moved[0]
    line = before.effect(Step.FANOUT, command.destination)
    if line is None or view.opening is None or view.opening.deleted:
        return True
    late = before.updated_at + view.policy.resend_limit <= NOW
    return not (line.state is EffectState.DROPPED or (line.state is EffectState.SENT and late))


def dead_letter_buries_its_conversation(view: StepView) -> bool:
    if view.moved is None or view.moved[1].status is not Status.DEAD_LETTER:
        return False
    closing = view.closing
    return closing is None or not (
        closing.status is ConversationStatus.FAILED and closing.discarded
    )


def success_closes_or_continues_its_conversation(view: StepView) -> bool:
    if view.moved is None or view.did is Verb.RESEND or view.decision is None:
        return False
    if view.moved[1].outcome is not Outcome.SUCCESS:
        return False
    closing, successor = view.closing, view.decision.successor
    if closing is None or not view.decision.publish or not view.decision.drop_results:
        return True
    if successor is not None:
        return not ours(closing, successor)
    return closing.status is not ConversationStatus.COMPLETED or not closing.names(view.moved[1])


def admitted_conversation_is_processing_under_its_job(view: StepView) -> bool:
    answer = view.decision
    if answer is None or answer.job is None or view.did not in (Verb.ADMIT, Verb.REPLAY):
        return False
    return not ours(view.closing, answer.job)


def only_live_content_is_admitted(view: StepView) -> bool:
    if view.did is not Verb.ADMIT or not isinstance(view.command, c.Admit):
        return False
    seen = view.opening
    if seen is None or seen.deleted or (seen.discarded and not _discarded_by_its_run(view)):
        return True
    return not (seen.has_content and seen.has_room)


def _discarded_by_its_run(view: StepView) -> bool:
    """Whether the last run found the conversation not worth keeping: newer content may be."""
    line = view.present.effect(Step.ENRICH) if view.present is not None else None
    ended = view.present is not None and view.present.status.terminal
    return ended and line is not None and line.code is EffectCode.DISCARDED


def revision_rises_only_for_newer_content(view: StepView) -> bool:
    """Contract 6: without newer content a repeat never raises the revision."""
    answer, seen = view.decision, view.opening
    if answer is None or seen is None:
        return False
    wanted = seen.wanted_version or 0
    if answer.successor is not None and view.before is not None:
        return wanted <= (view.before.content_version or 0)
    if view.did is not Verb.ADMIT or view.before is not None:
        return False
    if seen.status is not ConversationStatus.COMPLETED:
        return view.present is not None and ours(seen, view.present) and not view.present.terminal
    read = view.present.content_version or 0 if view.present is not None else 0
    return seen.content_version <= max(read, wanted)


def wish_is_noted_only_for_newer_content(view: StepView) -> bool:
    answer, seen = view.decision, view.opening
    if answer is None or answer.changed or seen is None or answer.conversation is None:
        return False
    read = view.before.content_version or 0 if view.before is not None else 0
    return seen.content_version <= max(read, seen.wanted_version or 0)


def force_never_changes(view: StepView) -> bool:
    if view.moved is None or reattached(view):
        return False
    return view.moved[0].force_process is not view.moved[1].force_process


def byok_is_only_raised_and_only_by_the_mark(view: StepView) -> bool:
    """Keys are never unneeded again; a re-attach or the conversation's mark raises the need."""
    if view.moved is None:
        return False
    before, after = view.moved
    if before.requires_byok is after.requires_byok or reattached(view):
        return before.requires_byok and not after.requires_byok
    return before.requires_byok or view.opening is None or not view.opening.requires_byok


def blocked_work_waits_for_keys(view: StepView) -> bool:
    """A BYOK row is queued only by somebody with keys, or after a claim that had them."""
    answer = view.decision
    if answer is None or not answer.changed:
        return False
    rows = [row for row in (answer.job, answer.successor) if row is not None]
    told = isinstance(view.command, c.PresentKeys | c.Fail | c.Complete | c.Postpone | c.Release)
    holds = told or bool(getattr(view.command, "holds_keys", False))
    return any(r.status is Status.QUEUED and r.requires_byok and not holds for r in rows)


def replay_takes_only_what_the_dead_letter_left(view: StepView) -> bool:
    if view.did is not Verb.REPLAY or view.moved is None:
        return False
    before, after = view.moved
    seen = view.opening
    if seen is None or seen.deleted or seen.status is not ConversationStatus.FAILED:
        return True
    fresh = (after.attempt_count, after.releases, after.outcome, after.failure_code)
    return (
        before.status is not Status.DEAD_LETTER
        or not seen.names(before)
        or fresh != (0, 0, None, None)
        or after.replay_count != before.replay_count + 1
    )


def abandon_takes_only_what_waited_too_long(view: StepView) -> bool:
    if view.moved is None or not isinstance(view.command, c.Abandon):
        return False
    limit = view.policy.abandon_after
    return limit is None or view.moved[0].updated_at + limit > NOW


def retention_takes_only_old_completed_rows(view: StepView) -> bool:
    command, before = view.command, view.before
    if not isinstance(command, c.Purge) or command.cause is not PurgeCause.RETENTION:
        return False
    if not view.wrote or before is None:
        return False
    done = before.completed_at
    return done is None or done + view.policy.retention > NOW


def terminal_row_stays_as_it_is(view: StepView) -> bool:
    if view.moved is None or not view.moved[0].status.terminal:
        return False
    return view.did not in (Verb.REPLAY, Verb.RESEND)
