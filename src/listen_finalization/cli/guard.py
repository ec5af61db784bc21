"""The last frame of every command: whatever happens ends as short lines and an exit code.

No traceback is ever printed: exception texts may hold what people said, or a key.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import click

from listen_finalization.cli import faults
from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.main import without
from listen_finalization.cli.printing import NobodyReadsError, complain
from listen_finalization.cli.root import root
from listen_finalization.errors import ListenFinalizationError

PROGRAM = "listen-finalization"


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    _hush()
    try:
        code = root.main(list(arguments), prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except Exception as fault:  # noqa: BLE001 - the last frame
        return _ended(fault)
    except (KeyboardInterrupt, asyncio.CancelledError) as stopped:
        return _stopped(stopped)
    return code if isinstance(code, int) else ExitCode.OK


def _ended(fault: Exception) -> ExitCode:
    match fault:
        case click.UsageError():
            return _usage(fault)
        case click.ClickException():
            complain((fault.format_message(),), "see --help")
            return ExitCode.USAGE
        case click.Abort():
            return _stopped(KeyboardInterrupt())
        case NobodyReadsError():
            return _unread()
        case ListenFinalizationError():
            return _told(fault)
        case OSError():
            return _told(faults.os_fault(fault))
        case ModuleNotFoundError():
            return without(fault)
    complain((f"unexpected {type(fault).__name__}",), "report it with the command that you typed")
    return ExitCode.DEFECT


def _usage(fault: click.UsageError) -> ExitCode:
    path = fault.ctx.command_path if fault.ctx is not None else PROGRAM
    complain((fault.format_message(),), f"see `{path} --help`")
    return ExitCode.USAGE


def _told(fault: ListenFinalizationError) -> ExitCode:
    told = faults.told(fault)
    complain(told.lines, told.remedy)
    return told.code


def _unread() -> ExitCode:
    """End quietly when nobody reads on, as `head` does; what is buffered must not raise again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.OK


def _stopped(stopped: BaseException) -> ExitCode:
    interrupted = isinstance(stopped, KeyboardInterrupt)
    complain(("interrupted" if interrupted else "terminated",), "what was admitted is kept")
    return ExitCode.INTERRUPTED if interrupted else ExitCode.TERMINATED


def _hush() -> None:
    """Keep every way of printing an exception to its class, and no text from breaking output."""
    logging.raiseExceptions, logging.lastResort = False, None
    threading.excepthook = _class_only(lambda hooked: hooked.exc_type)
    sys.unraisablehook = _class_only(lambda hooked: hooked.exc_type)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _class_only(kind: Callable[[Any], type[BaseException] | None]) -> Callable[[Any], None]:
    def tell(hooked: Any) -> None:
        found = kind(hooked)
        name = found.__name__ if found is not None else "error"
        complain((f"unexpected {name} beside the command",), None)

    return tell
