"""Refusals that the contract does not allow (contract 4, 8). True is a violation."""

from __future__ import annotations

from listen_finalization.domain import commands as c
from listen_finalization.domain.codes import RefusalCode, Status
from listen_finalization.domain.decision import Refused

from .view import StepView, held, ours, owns


def owner_is_turned_away_only_for_open_deliveries(view: StepView) -> bool:
    if not isinstance(view.command, c.Checkpoint | c.Complete | c.Fail | c.Release):
        return False
    if not owns(view.before, view.command.claim) or not isinstance(view.answer, Refused):
        return False
    open_lines = view.before is not None and any(not e.final for e in view.before.deliveries)
    return view.answer.code is not RefusalCode.DELIVERIES_OPEN or not open_lines


def present_delivery_is_taken_from_a_free_row(view: StepView) -> bool:
    command, row, seen = view.command, view.before, view.opening
    if not isinstance(command, c.ClaimJob) or row is None or row.uid != command.uid:
        return False
    if row.status not in (Status.QUEUED, Status.LEASED) or held(row, command.dead_claim):
        return False
    if command.generation != row.dispatch_generation or row.claim_id == command.claim_id:
        return False
    marked = seen is not None and seen.requires_byok
    return command.holds_keys or not (row.requires_byok or marked)


def dead_letter_is_replayed_as_it_was_shown(view: StepView) -> bool:
    command, row, seen = view.command, view.before, view.opening
    if not isinstance(command, c.Replay) or row is None or seen is None:
        return False
    if row.status is not Status.DEAD_LETTER or row.dispatch_generation != command.generation:
        return False
    return seen.status == "failed" and not seen.deleted and seen.names(row)


def foreign_free_row_may_be_fenced_by_anybody(view: StepView) -> bool:
    row = view.before
    if not isinstance(view.command, c.Fence) or row is None or row.status.terminal:
        return False
    return not ours(view.opening, row) and not held(row, view.command.dead_claim)
