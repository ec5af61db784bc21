"""The command line in the test's own process."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from click.testing import CliRunner

from listen_finalization.cli.guard import run


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


def cli(*words: Any) -> Ran:
    with CliRunner().isolation() as (out, err, _):
        try:
            code = run([str(word) for word in words])
        except SystemExit as ended:
            code = int(ended.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
        return Ran(code, out.getvalue().decode(), err.getvalue().decode())
