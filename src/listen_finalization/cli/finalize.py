"""`finalize`: files in, finished records out, in a stack of this process or a running one."""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from listen_finalization.cli.exit_codes import ExitCode, described
from listen_finalization.cli.options import data_option, examples, output_option, uid_option
from listen_finalization.cli.place import embedded_settings, kept_or_temporary
from listen_finalization.cli.printing import complain, print_json, print_table, say
from listen_finalization.cli.running import run_async

if TYPE_CHECKING:
    from listen_finalization.cli.batch import Finalized
    from listen_finalization.cli.gateway import Gateway

TOKEN = "LISTEN_USER_TOKEN"  # noqa: S105 - the name of a variable
_COLUMNS = ("FILE", "STATUS", "TITLE", "ACTIONS", "EVENTS", "MEMORIES", "ATTEMPTS", "SECONDS")
_EXAMPLES = examples(
    "finalize meeting.vtt notes.srt talk.json",
    "finalize meetings/*.json -o json > records.json",
    "finalize talk.vtt --data ./data   # kept; newer content is a new revision",
    "finalize talk.vtt --url http://127.0.0.1:8080   # token in LISTEN_USER_TOKEN",
)


def _base(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check the URL of a stack; what is wrong is said without repeating it."""
    del context, parameter
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or parts.username is not None or parts.query or parts.fragment:
        raise click.BadParameter("an http or https base URL without user, query and fragment")
    return value.rstrip("/")


def _number(context: click.Context, parameter: click.Parameter, value: float) -> float:
    """Refuse `nan`, which no comparison of a range refuses."""
    del context, parameter
    if math.isnan(value):
        raise click.BadParameter("a number of seconds")
    return value


@click.command(short_help="Finalize transcripts.", epilog=f"{_EXAMPLES}\n\n\b\n{described()}")
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@data_option("Keep everything in this directory.  [default: a temporary one, removed at the end]")
@click.option("--url", metavar="URL", callback=_base, help="Use the stack that runs there.")
@click.option(
    "--token",
    metavar="TOKEN",
    envvar=TOKEN,
    help=f"User token for --url; better in {TOKEN}, since a command line is visible to others.",
)
@click.option("--force-process", is_flag=True, help="Keep conversations that are hardly any.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(0, 86_400, min_open=True),
    callback=_number,
    default=1_800,
    show_default=True,
    help="For each file, until its job is over.",
)
@click.option("-v", "--verbose", is_flag=True, help="JSON logs to stderr, progress in lines.")
@uid_option
@output_option
@click.pass_context
def finalize(
    context: click.Context,
    files: tuple[Path, ...],
    data: str | None,
    url: str | None,
    token: str | None,
    force_process: bool,
    timeout: float,
    verbose: bool,
    uid: str,
    output: str,
) -> int:
    """Finalize transcripts: WebVTT, SubRip or our JSON, one conversation a file.

    The id of a conversation is the file's name without its ending, or the id in JSON. Segments
    are stored by their id: a segment that left the file stays in a conversation that is kept.
    With -o json, stdout holds one JSON list with a record for each file.
    """
    _demand_one_stack(context, data, url, token)
    from listen_finalization.cli.batch import Batch
    from listen_finalization.cli.progress import progress_of

    _log(verbose)
    paths = _each_once(files)

    async def work() -> list[Finalized]:
        async with _gateway(data, url, token, uid) as gateway:
            with progress_of(paths, plain=verbose) as progress:
                batch = Batch(gateway, progress, force=force_process, timeout=timeout)
                return await batch.run(paths)

    return told(run_async(work()), output)


def _demand_one_stack(
    context: click.Context, data: str | None, url: str | None, token: str | None
) -> None:
    given = context.get_parameter_source("uid") is not click.core.ParameterSource.DEFAULT
    if url is not None and (data is not None or given):
        raise click.UsageError("--url goes with a token, not with --data or --uid")
    if url is not None and not token:
        raise click.UsageError(f"--url needs a user token: --token, or {TOKEN} in the environment")
    source = context.get_parameter_source("token")
    if url is None and source is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("--token is for a stack at --url")


def _log(verbose: bool) -> None:
    from listen_finalization.cli.logs import log_nowhere, log_to_stderr

    if verbose:
        log_to_stderr()
    else:
        log_nowhere()


def _each_once(files: Sequence[Path]) -> list[Path]:
    """Drop a file that was given before under any name."""
    seen: dict[Path, Path] = {}
    for path in files:
        if seen.setdefault(path.resolve(), path) is not path:
            say(f"note: {path} was given twice and is finalized once", to_stderr=True)
    return list(seen.values())


@contextlib.asynccontextmanager
async def _gateway(
    data: str | None, url: str | None, token: str | None, uid: str
) -> AsyncIterator[Gateway]:
    if url is not None:
        from listen_finalization.cli.remote import HttpGateway

        remote = HttpGateway(url, token or "")
        try:
            yield remote
        finally:
            await remote.close()
        return
    from listen_finalization.cli.gateway import LocalGateway
    from listen_finalization.stack import Stack

    with kept_or_temporary(data) as directory:
        async with Stack(embedded_settings(directory)) as stack:
            yield LocalGateway(stack, uid)


def told(files: Sequence[Finalized], output: str) -> ExitCode:
    """Print what became of the files and return the command's exit code."""
    if output == "json":
        print_json([file.document() for file in files])
    else:
        print_table(_COLUMNS, map(_row, files))
    faults = [file for file in files if file.fault is not None]
    for file in faults:
        complain_of(file)
    return max(file.exit_code for file in files)


def complain_of(file: Finalized) -> None:
    """Print the fault of one file; most messages name it, the others are given its name."""
    if file.fault is not None:
        name = str(file.path)
        lines = [line if name in line else f"{name}: {line}" for line in file.fault.lines]
        complain(lines, file.fault.remedy)


def _row(file: Finalized) -> tuple[Any, ...]:
    shown = file.document()
    status = shown["status"] or (shown["error"] or {}).get("code")
    gone = shown["discarded"] and file.exit_code is ExitCode.OK
    title = "(discarded)" if gone else shown["title"]
    counts = (
        None if shown[key] is None else len(shown[key])
        for key in ("action_items", "events", "memories")
    )
    return (file.path.name, status, title, *counts, shown["attempts"], f"{file.seconds:.1f}")
