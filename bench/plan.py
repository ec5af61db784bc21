"""How much is measured: the whole form and the quick one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.product import Place


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of one bench run; `runs` is the number of paired runs behind every median."""

    runs: int = 5
    commits: int = 300
    alone: int = 600
    together: int = 2_048
    blocks: int = 8
    jobs: int = 5_000
    samples: int = 40
    idle_seconds: float = 20.0
    settling_seconds: float = 2.0
    """How long an idle stack is left alone before it is measured."""


QUICK = Plan(
    runs=1,
    commits=60,
    alone=60,
    together=256,
    blocks=2,
    jobs=128,
    samples=8,
    idle_seconds=2.0,
    settling_seconds=0.5,
)


@dataclass(frozen=True, slots=True)
class Bench:
    """What every measure is given: sizes, a place on the disk, and somebody to tell."""

    plan: Plan
    place: Place
    say: Callable[[str], None]

    def runs(self, what: str) -> Iterator[int]:
        """Count the paired runs of a measure, telling each."""
        for number in range(self.plan.runs):
            self.say(f"{what}: run {number + 1} of {self.plan.runs}")
            yield number


Block = Callable[[range], float]
"""Does the work of some numbers and returns the seconds that it took."""


def alternated(count: int, blocks: int, turn: int, sides: dict[str, Block]) -> dict[str, float]:
    """Let the sides do the same blocks in turn; return each side's rate per second.

    Whose block comes first changes from block to block, and from run to run by `turn`, so that a
    drift of the machine hits all sides.
    """
    spent = dict.fromkeys(sides, 0.0)
    size = count // blocks
    for block in range(blocks):
        numbers = range(block * size, (block + 1) * size)
        order = list(sides) if (block + turn) % 2 == 0 else list(reversed(sides))
        for name in order:
            spent[name] += sides[name](numbers)
    return {name: size * blocks / seconds for name, seconds in spent.items()}
