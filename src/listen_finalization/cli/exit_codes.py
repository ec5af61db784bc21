"""How a command ends, as data: `--help`, the docs and the tests read it here."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class ExitCode(IntEnum):
    """Of several that apply to the files of one command, the highest is returned."""

    OK = 0
    UNFINISHED = 1
    USAGE = 2
    UNAVAILABLE = 3
    REFUSED = 4
    DEFECT = 70
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.OK: "done; of finalize: every job completed; of up: stopped by a signal",
    ExitCode.UNFINISHED: (
        "a job did not complete (dead letter, blocked, --timeout); check, doctor: a fault"
    ),
    ExitCode.USAGE: "the command line, a setting or an input file cannot be used",
    ExitCode.UNAVAILABLE: "the stack, its store or its port cannot be used now",
    ExitCode.REFUSED: "refused: no such job or destination, bad token, closed conversation",
    ExitCode.DEFECT: "an unexpected error, told by its class alone",
    ExitCode.INTERRUPTED: "interrupted (SIGINT)",
    ExitCode.TERMINATED: "terminated (SIGTERM)",
}


def described() -> str:
    """Return the list as `--help` shows it."""
    lines = [f"  {code.value:>3}  {meaning}" for code, meaning in MEANINGS.items()]
    return "\n".join(["Exit codes (of several, the highest):", *lines])
