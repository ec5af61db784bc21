"""The options that several commands share, and the form of their examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from listen_finalization.domain.identity import identifier_fault

Command = TypeVar("Command", bound=Callable[..., Any])


def _uid(context: click.Context, parameter: click.Parameter, value: str) -> str:
    del context, parameter
    fault = identifier_fault(value)
    if fault is not None:
        raise click.BadParameter(f"the uid {fault}")
    return value


def data_option(about: str) -> Callable[[Command], Command]:
    """Add --data with its own words."""
    return click.option("--data", metavar="DIR", help=about)


def stored_data(command: Command) -> Command:
    """Add --data for a command on the directory of a stack."""
    about = "Data directory.  [default: LISTEN_FINALIZATION_DATA_DIR, else ./data]"
    return data_option(about)(command)


def output_option(command: Command) -> Command:
    """Add -o; JSON is one document on stdout, in ASCII."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="What stdout holds.",
    )(command)


def uid_option(command: Command) -> Command:
    """Add --uid, checked as an identifier of the outbox."""
    return click.option(
        "--uid", default="me", show_default=True, callback=_uid, help="Which user."
    )(command)


def examples(*lines: str) -> str:
    """Return the epilog of a command: lines to copy, kept as they are."""
    return "\n".join(["\b", "Examples:", *(f"  listen-finalization {line}" for line in lines)])
