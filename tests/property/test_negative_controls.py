"""Take each guard away and see the named rule break: a guard that nobody misses is a finding."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest

from listen_finalization.domain import guards

from . import scenarios as s
from .explore import Explorer
from .holes import KNOWN
from .world import Scenario

LIMIT = 30_000


class Control(NamedTuple):
    """One guard replaced by a constant, and the rule that must notice it there."""

    guard: str
    value: bool
    scenario: Scenario
    rule: str
    meaning: str


CONTROLS = (
    Control("owner", True, s.WORKERS, "stale_owner_changes_nothing", "anybody owns"),
    Control("conversation_ours", True, s.LANES, "only_our_conversation_is_written", "always ours"),
    Control(
        "conversation_ours", False, s.EFFECTS, "our_conversation_is_never_fenced", "never ours"
    ),
    Control(
        "generation_current", True, s.WORKERS, "stale_generation_changes_nothing", "any delivery"
    ),
    Control("epoch_current", True, s.OPERATOR, "evict_takes_only_the_lease_shown", "any lease"),
    Control("claim_unused", True, s.WORKERS, "repeat_gives_the_same_answer", "never seen before"),
    Control("lease_free", True, s.WORKERS, "live_lease_is_never_taken", "nobody holds it"),
    Control("keys_present", True, s.BYOK, "byok_runs_only_with_keys", "keys are always there"),
    Control("budget_left", True, s.WORKERS, "attempts_stay_within_the_budget", "no budget"),
    Control("attempts_left", True, s.WORKERS, "final_failure_ends_the_job", "no final failure"),
    Control("releases_left", True, s.RELEASES, "environment_releases_are_bounded", "all free"),
    Control("due", True, s.WORKERS, "reconciler_takes_only_due_rows", "always due"),
    Control("only_deliveries_open", True, s.WORKERS, "success_needs_a_stored_record", "all stored"),
    Control(
        "only_deliveries_open", False, s.EFFECTS, "stored_record_is_never_buried", "never stored"
    ),
    Control(
        "deliveries_settled", True, s.EFFECTS, "complete_leaves_no_delivery_open", "none waits"
    ),
    Control(
        "newer_content", True, s.CONTENT, "revision_rises_only_for_newer_content", "always newer"
    ),
    Control("newer_content", False, s.CONTENT, "accepted_finalize_is_read", "never newer"),
    Control("wish_open", True, s.CONTENT, "revision_rises_only_for_newer_content", "always a wish"),
    Control(
        "discard_ours",
        True,
        replace(s.CONTENT, acts=s.CONTENT.acts | {"discard"}),
        "only_live_content_is_admitted",
        "a run discarded it, not its owner",
    ),
    Control(
        "discard_ours", False, s.CONTENT, "accepted_finalize_is_read", "its owner discarded it"
    ),
    Control("wish_open", False, s.CONTENT, "accepted_finalize_is_read", "no wish is kept"),
    Control(
        "conversation_replayable",
        True,
        s.LANES,
        "replay_takes_only_what_the_dead_letter_left",
        "whatever became of it",
    ),
    Control(
        "delivery_dropped", True, s.EFFECTS, "resend_takes_only_dropped_deliveries", "any delivery"
    ),
    Control("old_enough", True, s.BYOK, "abandon_takes_only_what_waited_too_long", "at once"),
    Control("retired", True, s.CONTENT, "retention_takes_only_old_completed_rows", "at once"),
)


def _guards() -> set[str]:
    functions = inspect.getmembers(guards, inspect.isfunction)
    return {
        name
        for name, function in functions
        if function.__module__ == guards.__name__ and not name.startswith("_")
    }


def _constant(value: bool) -> Callable[..., bool]:
    return lambda *_args, **_kwargs: value


def test_every_guard_has_a_control() -> None:
    assert {control.guard for control in CONTROLS} == _guards()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("control", CONTROLS, ids=[f"{c.guard}={c.value}" for c in CONTROLS])
def test_a_guard_that_is_taken_away_breaks_its_rule(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, control.guard, _constant(control.value))
    report = Explorer(control.scenario, stop_at=control.rule).run(LIMIT)
    broken = {rule for rule, verb in report.faults if (rule, verb) not in KNOWN}
    assert control.rule in broken, sorted(broken)
