"""What is measured and what is demanded of it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

Run = Mapping[str, float]
"""The raw numbers of one paired run, by name."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The floor of acceptance and the aim; `at_most` turns both from least to most."""

    accept: float
    aim: float | None = None
    at_most: bool = False

    def verdict(self, figure: float) -> str:
        """Say what the figure reaches: `aim`, `accepted` or `MISSED`."""
        if not self._holds(figure, self.accept):
            return "MISSED"
        return "aim" if self.aim is not None and self._holds(figure, self.aim) else "accepted"

    def _holds(self, figure: float, bound: float) -> bool:
        return figure <= bound if self.at_most else figure >= bound


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: the median over the runs, what it is a multiple of, the demand.

    A row without a demand is there to explain the others.
    """

    name: str
    what: str
    unit: str
    figures: tuple[float, ...]
    detail: str
    demand: Demand | None = None
    runs: tuple[Run, ...] = ()

    @property
    def figure(self) -> float:
        return statistics.median(self.figures)

    @property
    def verdict(self) -> str:
        return "-" if self.demand is None else self.demand.verdict(self.figure)


def middle(runs: tuple[Run, ...], name: str) -> float:
    """Return the median of one raw number over the runs."""
    return statistics.median(run[name] for run in runs)


def ratio_row(
    name: str,
    what: str,
    runs: tuple[Run, ...],
    base: str,
    *,
    unit: str,
    per: str,
    demand: Demand | None = None,
) -> Row:
    """Build the row of `product` over `base`; each run is a ratio of its own."""
    figures = tuple(run["product"] / run[base] for run in runs)
    detail = f"{middle(runs, 'product'):.4g} of {middle(runs, base):.4g} {per}"
    return Row(name, what, unit, figures, detail, demand, runs)
