"""Running the command line inside the test process, with nothing of the tester's environment."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from listen_finalization.cli.guard import run

GOLDEN = Path(__file__).with_name("golden")
EXAMPLES = Path(__file__).parents[3] / "examples"


@dataclass(frozen=True)
class Ran:
    """What one command line came to."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Put back what the last frame of a process may change for good."""
    root = logging.getLogger()
    held = (logging.raiseExceptions, logging.lastResort, list(root.handlers), root.level)
    hooks = (threading.excepthook, sys.unraisablehook)
    yield
    logging.raiseExceptions, logging.lastResort, root.handlers, level = held
    root.setLevel(level)
    threading.excepthook, sys.unraisablehook = hooks


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Return what runs a command line; `env` is added to an environment without our names."""
    for name in list(os.environ):
        if "LISTEN" in name or name.startswith("SYNC_TASKS"):
            monkeypatch.delenv(name)

    def invoke(*arguments: Any, env: Mapping[str, str] | None = None, typed: str = "") -> Ran:
        runner = CliRunner(env={"COLUMNS": "100", "TERM": "dumb", **(env or {})})
        with runner.isolation(input=typed) as (out, err, _):
            try:
                code = run([str(argument) for argument in arguments])
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
            return Ran(code, out.getvalue().decode(), err.getvalue().decode())

    return invoke


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Return what compares a text with its golden file; UPDATE_GOLDEN=1 writes it anew."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        if os.environ.get("UPDATE_GOLDEN"):
            path.write_text(text, "utf-8")
        assert text == path.read_text("utf-8"), f"{name}: UPDATE_GOLDEN=1 writes it anew"

    return compare
