"""How far a file has come: stages in their order, read off the stack's answer."""

from __future__ import annotations

from enum import StrEnum

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.domain.codes import EffectState, Outcome, Step
from listen_finalization.http.finalization import Standing
from listen_finalization.http.models import FinalizationAnswer


class Stage(StrEnum):
    """The word that progress shows for a file."""

    WAITING = "waiting"
    STORED = "stored"
    ADMITTED = "admitted"
    CLAIMED = "claimed"
    ENRICHED = "enriched"
    MEMORIES = "memories"
    FANOUT = "fanout"
    DONE = "done"
    FAILED = "failed"


PATH = (
    Stage.STORED,
    Stage.ADMITTED,
    Stage.CLAIMED,
    Stage.ENRICHED,
    Stage.MEMORIES,
    Stage.FANOUT,
    Stage.DONE,
)
_STEPS = {Step.ENRICH: Stage.ENRICHED, Step.MEMORIES: Stage.MEMORIES, Step.FANOUT: Stage.FANOUT}
_FINAL = frozenset({EffectState.DONE.value, EffectState.DROPPED.value})
_STUCK = frozenset({Standing.BLOCKED_BYOK})
"""Standings that only the user can end: waiting for them would be waiting for ever."""


def reached(answer: FinalizationAnswer) -> tuple[Stage, ...]:
    """Return the stages that the job has behind it, in order."""
    stages = [Stage.ADMITTED]
    if answer.attempt_count:
        stages.append(Stage.CLAIMED)
    stages += [_STEPS[one.step] for one in answer.steps if str(one.state) in _FINAL]
    if over(answer):
        stages.append(Stage.DONE if succeeded(answer) else Stage.FAILED)
    return tuple(stages)


def over(answer: FinalizationAnswer) -> bool:
    """Whether waiting any longer can bring nothing."""
    return answer.terminal or answer.status in _STUCK


def succeeded(answer: FinalizationAnswer) -> bool:
    """Whether the job completed with its record."""
    return answer.status is Standing.COMPLETED and answer.outcome is Outcome.SUCCESS


def exit_of(answer: FinalizationAnswer) -> ExitCode:
    """Return how one file's job counts for the command."""
    return ExitCode.OK if succeeded(answer) else ExitCode.UNFINISHED
