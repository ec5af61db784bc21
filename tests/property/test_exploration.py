"""The exhaustive exploration of the core: no rule broken, every edge of the table met."""

from __future__ import annotations

import pytest

from .explore import Report, explore, missed
from .holes import KNOWN
from .scenarios import CI, FULL

MIN_STATES = 90_000
MIN_STATES_FULL = 700_000


@pytest.fixture(scope="module")
def reports() -> list[Report]:
    return list(explore(CI))


def _faults(reports: list[Report]) -> dict[tuple[str, str], tuple[str, ...]]:
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for report in reports:
        for verdict, trace in report.faults.items():
            found.setdefault(verdict, trace)
    return found


@pytest.mark.timeout(600)
def test_no_reachable_step_or_state_breaks_a_rule(reports: list[Report]) -> None:
    faults = _faults(reports)
    assert {verdict: faults[verdict] for verdict in faults.keys() - KNOWN.keys()} == {}


@pytest.mark.timeout(600)
def test_every_listed_hole_is_still_there(reports: list[Report]) -> None:
    assert KNOWN.keys() - _faults(reports).keys() == set()


@pytest.mark.timeout(600)
def test_every_edge_of_the_table_and_every_refusal_is_met(reports: list[Report]) -> None:
    assert missed(reports) == ([], [])


@pytest.mark.timeout(600)
def test_the_exploration_is_as_large_as_it_says(reports: list[Report]) -> None:
    assert sum(report.states for report in reports) >= MIN_STATES


@pytest.mark.full
@pytest.mark.timeout(3_600)
def test_the_long_exploration_breaks_no_rule_either() -> None:
    reports = list(explore(FULL))
    assert {v: t for v, t in _faults(reports).items() if v not in KNOWN} == {}
    assert missed(reports) == ([], [])
    assert sum(report.states for report in reports) >= MIN_STATES_FULL
