"""The entry point: loads the command only once it is known that its libraries are there."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from listen_finalization.cli.exit_codes import ExitCode

MISSING = (
    "error: a library of the command line is not installed\n"
    "next:  pip install 'listen-finalization[server]'\n"
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with one of `exit_codes`."""
    try:
        from listen_finalization.cli.guard import run
    except ModuleNotFoundError as missing:
        sys.exit(without(missing))
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def without(missing: ModuleNotFoundError) -> ExitCode:
    """Say how to install what is missing; a module of our own that is missing is a defect."""
    if (missing.name or "").partition(".")[0] in {"", "listen_finalization"}:
        sys.stderr.write("error: unexpected ModuleNotFoundError\n")
        return ExitCode.DEFECT
    sys.stderr.write(MISSING)
    return ExitCode.USAGE


if __name__ == "__main__":
    main()
