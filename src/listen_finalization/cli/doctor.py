"""`doctor`: a live project against its deploy files and the settings of this environment."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.extras import google_needed
from listen_finalization.cli.faults import CommandError
from listen_finalization.cli.options import examples, output_option
from listen_finalization.cli.printing import console, print_json, print_table, say
from listen_finalization.cli.running import run_async
from listen_finalization.operate.deployed import Deployed, DeployFilesError, read_deployed
from listen_finalization.operate.findings import Finding, Verdict
from listen_finalization.settings import Settings

if TYPE_CHECKING:
    from rich.text import Text


@click.command(
    short_help="Compare a live project with its deploy files.",
    epilog=examples("doctor", "doctor --environment staging -o json", "doctor --deploy ../deploy"),
)
@click.option(
    "--deploy",
    type=click.Path(path_type=Path),
    default="./deploy",
    show_default=True,
    metavar="DIR",
    help="The deploy files.",
)
@click.option(
    "--environment",
    default="production",
    show_default=True,
    metavar="NAME",
    help="Which settings file of them: NAME.json.",
)
@click.option(
    "--deadline",
    type=click.FloatRange(0, 120, min_open=True),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long each look may take.",
)
@output_option
def doctor(deploy: Path, environment: str, deadline: float, output: str) -> int:
    """Compare a live project with its deploy files and the settings of this environment.

    Looks at the queue, rights, the worker, Firestore, key servers, clock and run lock; changes
    nothing. Each check ends as ok, warning, failure or unknown, with what was expected, what was
    found and what to type. No text of a setting is shown.

    It asks Google under the application default credentials. Where those may not look, the check
    is unknown and names the role. Exits 1 with a failure or an unknown, 3 where nothing of the
    project could be looked at. Needs the extra `google`.
    """
    deployed = _deployed(deploy, environment)
    found = _examined(deployed, Settings.from_environment(os.environ), deadline)
    if output == "json":
        print_json({"project": deployed.project, "findings": [_view(one) for one in found]})
    else:
        _tables(found)
    return _code(found)


def _deployed(directory: Path, environment: str) -> Deployed:
    try:
        return read_deployed(directory, environment)
    except DeployFilesError as fault:
        raise CommandError(
            str(fault),
            code=ExitCode.USAGE,
            remedy="name the deploy files with --deploy and --environment",
            word="deploy_files",
        ) from fault


def _examined(deployed: Deployed, settings: Settings, deadline: float) -> tuple[Finding, ...]:
    with google_needed("the doctor"):
        from listen_finalization.operate.examination import COUNT, examine
    with _progress(COUNT) as noted:
        return run_async(examine(deployed, settings, deadline=deadline, noted=noted))


@contextlib.contextmanager
def _progress(count: int) -> Iterator[Callable[[str], None]]:
    """Yield who is told that a look ended: a line that is drawn anew, where a person looks."""
    screen = console(sys.stderr)
    if not screen.is_terminal or screen.is_dumb_terminal:
        yield lambda _: None
        return
    from rich.live import Live

    ended: list[str] = []
    with Live(_line(ended, count), console=screen, transient=True) as drawing:

        def noted(name: str) -> None:
            ended.append(name)
            drawing.update(_line(ended, count))

        yield noted


def _line(ended: Sequence[str], count: int) -> Text:
    from rich.text import Text

    last = f": {ended[-1]}" if ended else ""
    return Text(f"looked at {len(ended)} of {count}{last}", style="bold")


def _view(finding: Finding) -> dict[str, str | None]:
    return {
        "code": finding.code,
        "verdict": finding.verdict,
        "expected": finding.expected,
        "found": finding.found,
        "remedy": finding.remedy,
    }


def _tables(found: Sequence[Finding]) -> None:
    """Print every check, then what to do, then the counts."""
    print_table(
        ("VERDICT", "CHECK", "EXPECTED", "FOUND"),
        [(one.verdict, one.code, one.expected, one.found) for one in found],
    )
    open_ones = [one for one in found if one.remedy is not None]
    if open_ones:
        say()
        print_table(("CHECK", "DO"), [(one.code, one.remedy) for one in open_ones])
    counts = Counter(one.verdict for one in found)
    say()
    say(", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict))


def _code(found: tuple[Finding, ...]) -> ExitCode:
    from listen_finalization.operate.doctor import all_blind

    if all_blind(found):
        return ExitCode.UNAVAILABLE
    bad = any(one.verdict in (Verdict.FAILURE, Verdict.UNKNOWN) for one in found)
    return ExitCode.UNFINISHED if bad else ExitCode.OK
