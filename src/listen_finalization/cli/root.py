"""The command and its nouns."""

from __future__ import annotations

from importlib.metadata import version

import click

from listen_finalization.cli.check import check
from listen_finalization.cli.demo import demo
from listen_finalization.cli.destinations import destinations
from listen_finalization.cli.dev import dev
from listen_finalization.cli.doctor import doctor
from listen_finalization.cli.exit_codes import described
from listen_finalization.cli.finalize import finalize
from listen_finalization.cli.jobs import jobs
from listen_finalization.cli.options import examples
from listen_finalization.cli.serve import serve
from listen_finalization.cli.token import token
from listen_finalization.cli.up import up

_STEPS = examples(
    "demo examples/standup.vtt",
    "finalize meeting.vtt notes.srt talk.json",
    "up --data ./data",
    "jobs list --data ./data",
)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"{_STEPS}\n\n\b\n{described()}",
)
@click.version_option(version("listen-finalization"), "--version", message="%(prog)s %(version)s")
def root() -> None:
    """From the end of a live listen session to a finished conversation record.

    Settings come from the environment; `check` shows them. Results go to stdout, progress, logs
    and errors to stderr.
    """


for command in (up, serve, finalize, jobs, check, doctor, destinations, token, demo, dev):
    root.add_command(command)
