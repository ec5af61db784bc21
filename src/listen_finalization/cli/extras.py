"""Libraries that a command needs beyond those of the command line itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.faults import CommandError

_OF_THE_EXTRA = frozenset({"google", "grpc", "proto"})


@contextlib.contextmanager
def google_needed(by: str) -> Iterator[None]:
    """Say how to install the `google` extra where an import in here finds it missing.

    `by` is who needs it. Raises `CommandError`; any other missing module is raised as it is.
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in _OF_THE_EXTRA:
            raise
        raise CommandError(
            f"a library of {by} is not installed",
            code=ExitCode.USAGE,
            remedy="pip install 'listen-finalization[server,google]'",
            word="extra_missing",
        ) from missing
