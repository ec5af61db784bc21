"""Tamper with single decisions and see the rules over whole states break: they are awake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from listen_finalization.domain import commands as c
from listen_finalization.domain.codes import RefusalCode, Status, Verb
from listen_finalization.domain.decision import Decision, Refused
from listen_finalization.domain.job import Instant
from listen_finalization.domain.machine import decide

from . import core
from . import scenarios as s
from .explore import Explorer
from .orders import NOW
from .world import Scenario

Tamper = Callable[[c.Command, Decision], object]
LIMIT = 20_000


class Fault(NamedTuple):
    """One fault of a machine, and the rule that must notice it there."""

    name: str
    tamper: Tamper
    scenario: Scenario
    rule: str


def _unclosed(command: c.Command, answer: Decision) -> object:
    return replace(answer, conversation=None) if answer.did is Verb.COMPLETE else answer


def _undiscarded(command: c.Command, answer: Decision) -> object:
    if answer.conversation is None or answer.conversation.status != "failed":
        return answer
    return replace(answer, conversation=replace(answer.conversation, discarded=False))


def _kept(command: c.Command, answer: Decision) -> object:
    return replace(answer, drop_results=False)


def _dropped(command: c.Command, answer: Decision) -> object:
    return replace(answer, drop_results=True) if answer.did is Verb.FAIL else answer


def _unfenced(command: c.Command, answer: Decision) -> object:
    return Refused(RefusalCode.LEASE_HELD, answer.job) if answer.did is Verb.FENCE else answer


def _unmoved(command: c.Command, answer: Decision) -> object:
    return Refused(RefusalCode.NOT_DUE, answer.job) if answer.did is Verb.REDISPATCH else answer


def _late(command: c.Command, answer: Decision) -> object:
    job = answer.job
    if job is None or job.status is not Status.QUEUED or answer.did is not Verb.FAIL:
        return answer
    return replace(answer, job=replace(job, reconcile_after_at=Instant(NOW + 500)))


def _forgotten(command: c.Command, answer: Decision) -> object:
    if answer.job is None or answer.did is not Verb.ADMIT or not answer.changed:
        return answer
    return replace(answer, job=replace(answer.job, effects=()))


def _unwritten(command: c.Command, answer: Decision) -> object:
    return replace(answer, results=()) if answer.results else answer


FAULTS = (
    Fault(
        "a completion leaves its conversation open",
        _unclosed,
        s.WORKERS,
        "named_job_is_terminal_exactly_when_its_conversation_is",
    ),
    Fault(
        "a dead letter is not discarded",
        _undiscarded,
        s.WORKERS,
        "dead_letter_shows_on_its_conversation",
    ),
    Fault("results stay", _kept, s.WORKERS, "step_results_go_with_settlement"),
    Fault("a failure drops results", _dropped, s.WORKERS, "publish_finds_the_record"),
    Fault("nobody fences", _unfenced, s.LANES, "foreign_job_can_be_fenced"),
    Fault("nobody redispatches", _unmoved, s.WORKERS, "due_row_can_be_moved"),
    Fault("a due time is lost", _late, s.WORKERS, "due_time_comes_within_bounds"),
    Fault(
        "a re-attach forgets its deliveries",
        _forgotten,
        s.EFFECTS,
        "delivered_destination_is_not_called_again",
    ),
    Fault(
        "a checkpoint loses its result",
        _unwritten,
        s.EFFECTS,
        "granted_checkpoint_stores_what_it_carries",
    ),
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_tampered_decision_breaks_its_rule(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    def tampered(job: Any, conversation: Any, command: c.Command, *rest: Any) -> object:
        answer = decide(job, conversation, command, *rest)
        return fault.tamper(command, answer) if isinstance(answer, Decision) else answer

    monkeypatch.setattr(core, "decide", tampered)
    report = Explorer(fault.scenario, stop_at=fault.rule).run(LIMIT)
    assert fault.rule in {rule for rule, _ in report.faults}
