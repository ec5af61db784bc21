"""The registry of the invariants, written from contract 3 to 9, 12 and 17 and from no guard.

A step invariant is a predicate over one step (`ownership.py`, `settling.py`; the ones about
repeats are in `core.py`, forbidden refusals in
`refusals.py`), a state invariant one over a whole state (`standing.py`). The name of
the function is the name of the rule; True is a violation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from listen_finalization.domain.decision import Refused

from . import ownership, refusals, settling
from .view import StepView

StepRule = Callable[[StepView], bool]


def _rules(*modules: object) -> tuple[tuple[str, StepRule], ...]:
    found = []
    for module in modules:
        for name, rule in inspect.getmembers(module, inspect.isfunction):
            if rule.__module__ == getattr(module, "__name__", "") and not name.startswith("_"):
                found.append((name, rule))
    return tuple(found)


STEP_RULES = _rules(ownership, settling)
REPEAT_RULES = (
    "repeat_writes_nothing",
    "repeat_meets_the_same_job",
    "repeat_gives_the_same_answer",
)


REFUSAL_RULES = _rules(refusals)


def broken_by_step(view: StepView) -> tuple[str, ...]:
    """Return the names of the rules that one step breaks."""
    if isinstance(view.answer, Refused):
        return tuple(name for name, rule in REFUSAL_RULES if rule(view))
    if not view.wrote:
        return ()
    return tuple(name for name, rule in STEP_RULES if rule(view))
