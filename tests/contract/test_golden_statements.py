"""What every verb costs: statements, commits and flushes, alone and in a batch of 64.

A change of a number is a change of the product: edit `golden_statements.json` with it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from .costs import SCENARIOS, SIZES, Bench
from .sqlite_subject import memory_directory

GOLDEN = json.loads(Path(__file__).with_name("golden_statements.json").read_text("utf-8"))


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=memory_directory()) as made:
        yield Path(made)


def _cost(path: Path, name: str, size: int) -> dict[str, int]:
    bench = Bench(path, size)
    operations = SCENARIOS[name](bench)
    seen: list[str] = []
    bench.engine.connection.set_trace_callback(seen.append)
    replies = bench.send(operations)
    bench.engine.connection.set_trace_callback(None)
    bench.engine.close()
    assert not any(isinstance(reply, Exception) for reply in replies)
    return {"statements": len(seen), "commits": seen.count("COMMIT")}


@pytest.mark.parametrize("name", SCENARIOS)
def test_verb_costs_what_the_golden_file_says(name: str, home: Path) -> None:
    for size in SIZES:
        golden = {k: v for k, v in GOLDEN[name][str(size)].items() if k != "flushes"}
        assert _cost(home / f"{size}.db", name, size) == golden


def test_golden_file_covers_every_scenario_and_nothing_else() -> None:
    assert set(GOLDEN) == set(SCENARIOS)


def test_every_commit_flushes_once_as_the_kernel_counts(tmp_path: Path) -> None:
    flushes = _flushes_by_scenario(tmp_path)
    told = {
        f"{name}:{size}": GOLDEN[name][str(size)]["flushes"] for name in GOLDEN for size in SIZES
    }
    assert flushes == told


def _flushes_by_scenario(home: Path) -> dict[str, int]:
    """Run every scenario under strace and count the flushes between its marks."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed: flushes are those of SQLite's documentation")
    log = home / "trace"
    command = [strace, "-f", "-qq", "-o", str(log), "-e", "trace=fsync,fdatasync,access,faccessat"]
    package = Path(__file__).parent
    run = subprocess.run(
        [*command, sys.executable, "-m", f"{package.name}.costs", str(home)],
        cwd=package.parent,
        env=os.environ | {"PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if "ptrace" in run.stderr.lower():
        pytest.skip("this machine does not allow ptrace")
    assert run.returncode == 0, run.stderr
    return _counted(log.read_text("utf-8"))


def _counted(trace: str) -> dict[str, int]:
    counts: Counter[str] = Counter()
    current = "end"
    for line in trace.splitlines():
        mark = re.search(r'"MARK:([^"]*)"', line)
        if mark is not None:
            current = mark[1]
            counts[current] += 0
        elif re.search(r"\bf(data)?sync\(", line):
            counts[current] += 1
    del counts["end"]
    return dict(counts)
