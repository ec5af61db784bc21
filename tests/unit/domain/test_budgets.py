"""The inequalities of contract 5.4, each at its edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from listen_finalization.domain.budgets import (
    Amount,
    Budgets,
    DispatchMode,
    Inequality,
    inequalities,
)

SOUND = Budgets(
    "MODE",
    DispatchMode.CLOUD_TASKS,
    lease=Amount("LEASE", 60),
    run_timeout=Amount("RUN", 1500),
    dispatch_deadline=Amount("DEADLINE", 1800),
    stale=Amount("STALE", 300),
    backoff=Amount("BACKOFF", 10),
    backoff_limit=Amount("LIMIT", 600),
    delivery_timeout=Amount("DELIVERY", 10),
    run_lock=Amount("LOCK", 1801),
)


def broken(budgets: Budgets) -> list[Inequality]:
    return [one for one in inequalities(budgets) if not one.holds]


def with_values(values: Mapping[str, float]) -> Budgets:
    changed = SOUND
    for field, value in values.items():
        amount = Amount(getattr(SOUND, field).setting, value)
        changed = replace(changed, **{field: amount})  # type: ignore[arg-type]
    return changed


def test_the_documented_defaults_hold_every_inequality() -> None:
    assert broken(SOUND) == []


@pytest.mark.parametrize(
    "values",
    [
        {"lease": 1500},
        {"run_timeout": 1800},
        {"run_timeout": 60},
        {"stale": 30},
        {"backoff": 600},
        {"run_timeout": 100, "delivery_timeout": 100},
        {"lease": 0.03},
    ],
)
def test_equal_amounts_work_together(values: Mapping[str, float]) -> None:
    assert broken(with_values(values)) == []


@pytest.mark.parametrize(
    ("values", "text", "names"),
    [
        ({"lease": 1501}, "LEASE (1501) <= RUN (1500)", ("LEASE", "RUN")),
        ({"dispatch_deadline": 1499}, "RUN (1500) <= DEADLINE (1499)", ("RUN", "DEADLINE")),
        (
            {"dispatch_deadline": 1801},
            "DEADLINE (1801) <= the limit of Cloud Tasks (1800)",
            ("DEADLINE",),
        ),
        (
            {"stale": 29},
            "STALE (29) >= the least with MODE=cloud_tasks (30)",
            ("STALE", "MODE"),
        ),
        ({"backoff": 600.5}, "BACKOFF (600.5) <= LIMIT (600)", ("BACKOFF", "LIMIT")),
        (
            {"delivery_timeout": 70, "run_timeout": 60},
            "DELIVERY (70) <= RUN (60)",
            ("DELIVERY", "RUN"),
        ),
        ({"run_lock": 1500}, "RUN (1500) < LOCK (1500)", ("RUN", "LOCK")),
    ],
)
def test_a_broken_inequality_tells_both_names_and_both_numbers(
    values: Mapping[str, float], text: str, names: tuple[str, ...]
) -> None:
    [one] = broken(with_values(values))

    assert (one.text, one.names) == (text, names)
    assert one.values == (one.left.value, one.right.value)


def test_a_lease_of_no_time_is_not_longer_than_its_renewal() -> None:
    [one] = broken(with_values({"lease": 0}))

    assert one.text == "a third of LEASE (0) < LEASE (0)"


def test_without_a_run_lock_its_lifetime_binds_nothing() -> None:
    assert broken(replace(with_values({"run_timeout": 1800}), run_lock=None)) == []


@pytest.mark.parametrize("mode", [DispatchMode.EMBEDDED, DispatchMode.INLINE])
def test_without_a_queue_one_second_is_not_too_soon(mode: DispatchMode) -> None:
    assert broken(replace(with_values({"stale": 1}), mode=mode)) == []
    [one] = broken(replace(with_values({"stale": 0.9}), mode=mode))
    assert one.text == f"STALE (0.9) >= the least with MODE={mode} (1)"
