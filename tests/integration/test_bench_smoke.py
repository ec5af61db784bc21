"""The bench runs: its quick form ends 0 with a figure for every measure. No figure is judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHOWN = {"admission": 3, "drain": 1, "start": 1, "recovery": 3, "idle": 1}


@pytest.mark.timeout(300)
def test_quick_bench_measures_everything(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    command = (sys.executable, "-m", "bench", "--quick", "--dir", tmp_path, "--out", out)
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240
    )
    assert ended.returncode == 0, ended.stderr
    rows = json.loads(out.read_text("utf-8"))["rows"]
    names = [row["name"] for row in rows]
    assert {name: names.count(name) for name in SHOWN} == SHOWN
    assert all(row["figures"] and row["figure"] >= 0 for row in rows)
    assert all(row["what"] in ended.stdout for row in rows)


def test_unknown_measure_is_refused() -> None:
    command = (sys.executable, "-m", "bench", "--only", "nothing")
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 2
    assert "nothing" in ended.stderr
