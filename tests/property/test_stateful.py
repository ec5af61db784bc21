"""Longer random walks through the same worlds, where the search in breadth does not reach."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from . import scenarios as s
from .actions import steps
from .holes import KNOWN
from .liveness import Healthy
from .orders import NAMES
from .standing import broken_in_state
from .world import Edge, Scenario, World

WORLDS = (s.WORKERS, s.RELEASES, s.BYOK, s.OPERATOR, s.CONTENT, s.RESUMED, s.LANES, s.EFFECTS)


class Walk(RuleBasedStateMachine):
    """One world, walked by steps that hypothesis picks; bounds do not stop a walk."""

    @initialize(scenario=st.sampled_from(WORLDS), start=st.integers(0, 5))
    def begin(self, scenario: Scenario, start: int) -> None:
        self.world = World(scenario)
        self.healthy = Healthy(self.world.core, scenario.destinations)
        starts = list(self.world.starts())
        self.state = starts[start % len(starts)]
        self.broken: set[str] = set()

    @rule(pick=st.integers(0, 2**16))
    def walk(self, pick: int) -> None:
        """Take one of the steps that the world has; one in four of them at most is a refusal."""
        edges = list(steps(self.world, self.state))
        moving = [edge for edge in edges if edge.state != self.state]
        chosen = edges if pick % 4 == 0 or not moving else moving
        self.take(chosen[pick // 4 % len(chosen)])

    def take(self, edge: Edge) -> None:
        what = NAMES[edge.label.order[0]] if edge.label.order else edge.label.what
        self.state = edge.state
        standing = set(broken_in_state(self.world.core, edge.state))
        stuck = self.healthy.stuck(edge.state.rows, edge.state.conversation)
        standing |= {stuck} if stuck is not None else set()
        faults = {*edge.broken, *(standing - self.broken)}
        self.broken = standing
        assert {(rule, what) for rule in faults} - KNOWN.keys() == set()


Walk.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=80,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestWalk = Walk.TestCase
