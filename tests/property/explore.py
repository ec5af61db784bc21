"""Breadth-first search over the bounded worlds; `python -m tests.property.explore [--full]`."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from listen_finalization.domain.codes import RefusalCode

from .actions import steps
from .core import Edge as TableEdge
from .coverage import expected_codes, expected_edges
from .holes import KNOWN
from .liveness import Healthy
from .orders import NAMES
from .scenarios import CI, FULL
from .standing import broken_in_state
from .world import Label, Scenario, State, World

Verdict = tuple[str, str]


@dataclass(slots=True)
class Report:
    """What one exploration saw; `faults` maps a rule and the verb that broke it to a trace."""

    scenario: str
    states: int = 0
    transitions: int = 0
    depth: int = 0
    stores: int = 0
    cut: int = 0
    seconds: float = 0.0
    complete: bool = True
    edges: Counter[TableEdge] = field(default_factory=Counter)
    codes: Counter[RefusalCode] = field(default_factory=Counter)
    faults: dict[Verdict, tuple[str, ...]] = field(default_factory=dict)
    counts: Counter[Verdict] = field(default_factory=Counter)

    def line(self) -> str:
        return (
            f"{self.scenario}: {self.states} states, {self.transitions} transitions, depth "
            f"{self.depth}, {self.stores} stores, {self.cut} at the bounds, "
            f"{self.seconds:.1f} s of processor{'' if self.complete else ' (stopped)'}"
        )


class Explorer:
    """Visits every state of a scenario once, nearest first, so that a first trace is shortest."""

    def __init__(self, scenario: Scenario, *, stop_at: str | None = None) -> None:
        self.world = World(scenario)
        self.healthy = Healthy(self.world.core, scenario.destinations)
        self.report = Report(scenario.name)
        self.stop_at = stop_at
        self._from: dict[State, tuple[State, Label] | None] = {}
        self._standing: dict[tuple[object, ...], tuple[str, ...]] = {}
        self._stuck: dict[tuple[object, ...], str | None] = {}

    def run(self, limit: int | None = None) -> Report:
        """Search to the end of the bounds, to `limit` states, or to the fault waited for."""
        started, report = time.process_time(), self.report
        layer = list(self.world.starts())
        for state in layer:
            self._from[state] = None
        while layer and not self._over(limit):
            report.depth += 1
            layer = self._next_layer(layer, limit)
        report.complete = not layer
        report.states = len(self._from)
        report.stores = len(self._stuck)
        report.seconds = time.process_time() - started
        return report

    def _over(self, limit: int | None) -> bool:
        found = self.stop_at is not None and any(r == self.stop_at for r, _ in self.report.faults)
        return found or (limit is not None and len(self._from) >= limit)

    def _next_layer(self, layer: list[State], limit: int | None) -> list[State]:
        fresh: list[State] = []
        report, known = self.report, self._from
        for state in layer:
            if not self.world.within(state):
                report.cut += 1
                continue
            for edge in steps(self.world, state):
                report.transitions += 1
                outcome = edge.outcome
                if outcome is not None:
                    if outcome.code is not None:
                        report.codes[outcome.code] += 1
                    for visited in outcome.edges:
                        report.edges[visited] += 1
                if edge.state not in known:
                    known[edge.state] = (state, edge.label)
                    fresh.append(edge.state)
                    self._look_at(edge.state, state)
                if edge.broken:
                    self._note(edge.broken, state, edge.label)
            if self._over(limit):
                break
        return fresh

    def _look_at(self, state: State, origin: State) -> None:
        """Check a new state; a rule that was broken before the step already is not told again."""
        broken = self._faults_of(state)
        if broken:
            fresh = set(broken) - set(self._faults_of(origin))
            if fresh:
                self._note(sorted(fresh), state, None)

    def _faults_of(self, state: State) -> tuple[str, ...]:
        conversation, rows, results, _, ghost = state
        key = (conversation, rows, results, ghost)
        broken = self._standing.get(key)
        if broken is None:
            broken = broken_in_state(self.world.core, state)
            store = (rows, conversation)
            if store not in self._stuck:
                self._stuck[store] = self.healthy.stuck(rows, conversation)
            stuck = self._stuck[store]
            broken += (stuck,) if stuck is not None else ()
            self._standing[key] = broken
        return broken

    def _note(self, broken: Iterable[str], state: State, label: Label | None) -> None:
        last = label
        if last is None:
            origin = self._from[state]
            last = origin[1] if origin is not None else Label("start")
        for name in broken:
            verdict = (name, str(last.what if not last.order else _verb(last)))
            self.report.counts[verdict] += 1
            if verdict not in self.report.faults:
                self.report.faults[verdict] = self.trace(state, label)

    def trace(self, state: State, label: Label | None) -> tuple[str, ...]:
        """Return the shortest way to a state, and the step that was taken from it."""
        words = [str(label)] if label is not None else []
        origin = self._from[state]
        while origin is not None:
            state, step = origin
            words.append(str(step))
            origin = self._from[state]
        seen = self.world.core.conversations[state.conversation]
        marks = "" if seen is None else f" (BYOK mark {seen.requires_byok})"
        return (f"start{marks}", *reversed(words))


def _verb(label: Label) -> str:
    return NAMES[label.order[0]]


def explore(scenarios: Iterable[tuple[Scenario, int]]) -> Iterator[Report]:
    """Explore scenario after scenario, each to its own number of states."""
    for scenario, limit in scenarios:
        yield Explorer(scenario).run(limit)


def missed(reports: Iterable[Report]) -> tuple[list[TableEdge], list[RefusalCode]]:
    """Return the edges of the table and the refusal codes that no exploration met."""
    edges: set[TableEdge] = set()
    codes: set[RefusalCode] = set()
    for report in reports:
        edges.update(report.edges)
        codes.update(report.codes)
    return sorted(expected_edges() - edges, key=str), sorted(expected_codes() - codes)


def main(arguments: list[str] | None = None) -> int:
    """Explore, print what was seen, and return 1 where a rule was broken that is not listed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the long form")
    parser.add_argument("--only", default="", help="explore the scenarios whose name holds this")
    options = parser.parse_args(arguments)
    chosen = [pair for pair in (FULL if options.full else CI) if options.only in pair[0].name]
    reports = []
    for report in explore(chosen):
        reports.append(report)
        print(report.line(), flush=True)
        for verdict, trace in report.faults.items():
            known = "known, " if verdict in KNOWN else ""
            print("  BROKEN", *verdict, f"({known}{report.counts[verdict]} times)")
            print(*(f"      {step}" for step in trace), sep="\n")
    edges, codes = missed(reports)
    total, steps_taken = sum(r.states for r in reports), sum(r.transitions for r in reports)
    spent = sum(r.seconds for r in reports)
    print(f"{total} states, {steps_taken} transitions, {spent:.1f} s of processor")
    print(f"{len(expected_edges()) - len(edges)} of {len(expected_edges())} edges of the table")
    print(*(f"  missed: {verb} {before} -> {after}" for verb, before, after in edges), sep="\n")
    print(f"{len(expected_codes()) - len(codes)} of {len(expected_codes())} refusal codes; missed:")
    print(" ", *codes)
    broken = {verdict for report in reports for verdict in report.faults}
    return 1 if broken - set(KNOWN) else 0


if __name__ == "__main__":
    sys.exit(main())
