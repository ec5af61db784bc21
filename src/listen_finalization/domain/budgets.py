"""The timing inequalities that one deployment must hold (contract 5.4); pure, in seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import ge, le, lt
from typing import Literal

MAX_DISPATCH_DEADLINE = 1800
"""Seconds; the most that Cloud Tasks waits for an HTTP target (its reference: 15 s to 30 min)."""

RENEWALS_PER_LEASE = 3
"""A run renews its lease at every third of it (contract 5.2), so that one may be missed."""


class DispatchMode(StrEnum):
    """Who runs a job (contract 7)."""

    INLINE = "inline"
    CLOUD_TASKS = "cloud_tasks"
    EMBEDDED = "embedded"


LEAST_STALE: Mapping[DispatchMode, int] = {
    DispatchMode.INLINE: 1,
    DispatchMode.CLOUD_TASKS: 30,
    DispatchMode.EMBEDDED: 1,
}
"""Seconds; a shorter wait would take a queue that is only slow for one that lost the task."""

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {"<": lt, "<=": le, ">=": ge}


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of seconds and the setting it comes from; `label` says how, where it is derived.

    `setting` is None for a limit that is not ours to set.
    """

    setting: str | None
    value: float
    label: str | None = None

    def __str__(self) -> str:
        return f"{self.label or self.setting} ({self.value:.15g})"


@dataclass(frozen=True, slots=True)
class Inequality:
    """One relation between two amounts, whether it holds or not."""

    left: Amount
    relation: Literal["<", "<=", ">="]
    right: Amount

    @property
    def names(self) -> tuple[str, ...]:
        """The settings that it binds, left before right; a limit that is not ours has no name."""
        return tuple(amount.setting for amount in (self.left, self.right) if amount.setting)

    @property
    def values(self) -> tuple[float, float]:
        return self.left.value, self.right.value

    @property
    def holds(self) -> bool:
        return _COMPARE[self.relation](*self.values)

    @property
    def text(self) -> str:
        """The relation with names and numbers, as it should be."""
        return f"{self.left} {self.relation} {self.right}"


@dataclass(frozen=True, slots=True)
class Budgets:
    """What the inequalities speak of. `mode_setting` is the name of the setting of the mode.

    `run_lock` is the lifetime of the run lock, and None where there is none: nothing to outlive.
    """

    mode_setting: str
    mode: DispatchMode
    lease: Amount
    run_timeout: Amount
    dispatch_deadline: Amount
    stale: Amount
    backoff: Amount
    backoff_limit: Amount
    delivery_timeout: Amount
    run_lock: Amount | None = None

    @property
    def renewal(self) -> Amount:
        """The time between two renewals of the lease."""
        lease = self.lease
        return Amount(
            lease.setting, lease.value / RENEWALS_PER_LEASE, f"a third of {lease.setting}"
        )

    @property
    def least_stale(self) -> Amount:
        """The least stale seconds of the mode."""
        label = f"the least with {self.mode_setting}={self.mode}"
        return Amount(self.mode_setting, LEAST_STALE[self.mode], label)


def inequalities(budgets: Budgets) -> tuple[Inequality, ...]:
    """Return every relation that start-up demands, broken ones included, in a fixed order."""
    deadline_limit = Amount(None, MAX_DISPATCH_DEADLINE, "the limit of Cloud Tasks")
    run_lock = budgets.run_lock
    return (
        Inequality(budgets.renewal, "<", budgets.lease),
        Inequality(budgets.lease, "<=", budgets.run_timeout),
        Inequality(budgets.run_timeout, "<=", budgets.dispatch_deadline),
        Inequality(budgets.dispatch_deadline, "<=", deadline_limit),
        Inequality(budgets.stale, ">=", budgets.least_stale),
        Inequality(budgets.backoff, "<=", budgets.backoff_limit),
        Inequality(budgets.delivery_timeout, "<=", budgets.run_timeout),
        *([Inequality(budgets.run_timeout, "<", run_lock)] if run_lock else ()),
    )
