"""How soon a job runs again after its process was killed with SIGKILL while it ran.

The lease of the measured processes is 120 s, so that waiting it out cannot be what is measured:
only the proof that the owner's process is dead leads to these times. A run that begins before the
restarted process is ready counts as 0 s from readiness.
"""

from __future__ import annotations

from pathlib import Path

from bench.figures import Demand, Row, Run
from bench.plan import Bench
from bench.process import Child
from bench.product import MeasurementError, prepare

LEASE = 120
DEFAULT_LEASE = 15.0
"""Seconds; the embedded default, from which the demand for two processes is made."""


def measure(bench: Bench) -> list[Row]:
    """Measure a restart of the only process, and the other's taking over of two."""
    prepared = bench.place.new()
    prepare(prepared, 1, admitted=True)
    alone = tuple(
        _restarted(bench, prepared) for _ in bench.runs("recovery by a restart after kill -9")
    )
    pairs = tuple(
        _taken_over(bench, prepared) for _ in bench.runs("recovery by the other of two processes")
    )
    limit = Demand(2.0, at_most=True)
    other = Demand(DEFAULT_LEASE + 2.0, at_most=True)
    return [
        _row("kill -9, restart: ready to run again", alone, "from_ready", limit),
        _row("kill -9, restart: exec to run again", alone, "from_exec", limit),
        _row("kill -9, one of two: kill to run again", pairs, "from_kill", other),
    ]


def _row(what: str, runs: tuple[Run, ...], name: str, demand: Demand) -> Row:
    figures = tuple(run[name] for run in runs)
    detail = f"lease {LEASE} s; default {DEFAULT_LEASE:g} s"
    return Row("recovery", what, "s", figures, detail, demand, runs)


def _restarted(bench: Bench, prepared: Path) -> Run:
    directory = bench.place.copy(prepared)
    with Child(directory, lease=LEASE) as first:
        first.told("ran")
    with Child(directory, lease=LEASE) as second:
        ran, ready = second.told("ran"), second.told("ready")
        began = second.began
    bench.place.drop(directory)
    return {"from_exec": ran - began, "from_ready": max(ran - ready, 0.0), "ready": ready - began}


def _taken_over(bench: Bench, prepared: Path) -> Run:
    directory = bench.place.copy(prepared)
    with Child(directory, lease=LEASE) as owner:
        owner.told("ran")
        with Child(directory, lease=LEASE) as other:
            other.told("ready")
            if other.says("ran"):
                raise MeasurementError("two processes run one job")
            killed = owner.kill()
            ran = other.told("ran")
    bench.place.drop(directory)
    return {"from_kill": ran - killed}
