"""str-upgrade-busy: eight processes on one file; none is ever told that the database is locked."""

from __future__ import annotations

from pathlib import Path

import pytest

from .loads import adds_up, percentile, run_processes

PROCESSES = 8
BOUND = 5.0
"""Seconds: half of the patience after which a caller would be told that the store is busy."""


def _mixed_load(path: Path, operations: int, slow: float, bound: float = BOUND) -> None:
    tallies = run_processes(path, PROCESSES, operations, slow)
    assert [tally.faults for tally in tallies] == [[]] * PROCESSES
    adds_up(path, tallies)
    writes = [time for tally in tallies for time in tally.write_times]
    reads = [time for tally in tallies for time in tally.read_times]
    assert percentile(writes, 0.99) < bound
    assert percentile(reads, 0.99) < bound


def test_mixed_load_of_eight_processes_meets_no_lock(tmp_path: Path) -> None:
    _mixed_load(tmp_path / "store.db", 2_000, 0.0)


def test_mixed_load_on_a_slow_disk_meets_no_lock(tmp_path: Path) -> None:
    _mixed_load(tmp_path / "store.db", 640, 0.005)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_long_mixed_load_meets_no_lock(tmp_path: Path) -> None:
    _mixed_load(tmp_path / "store.db", 10_000, 0.0)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_long_mixed_load_on_a_disk_with_flushes_of_50_ms_meets_no_lock(tmp_path: Path) -> None:
    _mixed_load(tmp_path / "store.db", 4_000, 0.05, bound=10.0)
