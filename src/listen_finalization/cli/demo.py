"""`demo`: finalize examples in a temporary stack and show the records with their jobs' history."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from listen_finalization.cli import job_views
from listen_finalization.cli.options import examples
from listen_finalization.cli.place import embedded_settings, kept_or_temporary
from listen_finalization.cli.printing import console, harmless, print_table, say, table
from listen_finalization.cli.running import run_async
from listen_finalization.domain.job import Instant, Job

if TYPE_CHECKING:
    from listen_finalization.cli.batch import Finalized

EXAMPLES = (Path("examples/standup.vtt"), Path("examples/doctor-visit.json"))
_WIDTH = 100
Shown = list[tuple["Finalized", "Job | None", Instant]]


@click.command(
    short_help="Finalize two examples and show the records.",
    epilog=examples("demo", "demo examples/standup.vtt"),
)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
def demo(files: tuple[Path, ...]) -> int:
    """Finalize two example conversations in a temporary stack and show what came of them."""
    from listen_finalization.cli.finalize import complain_of
    from listen_finalization.cli.logs import log_nowhere

    log_nowhere()
    shown = run_async(_finalized(files or EXAMPLES))
    for file, job, now in shown:
        if file.fault is not None:
            complain_of(file)
        elif sys.stdout.isatty():
            _panel(file, job, now)
        else:
            _plain(file, job, now)
    return max(file.exit_code for file, _, _ in shown)


async def _finalized(paths: tuple[Path, ...]) -> Shown:
    from listen_finalization.cli.batch import Batch
    from listen_finalization.cli.gateway import LocalGateway
    from listen_finalization.cli.progress import progress_of
    from listen_finalization.stack import Stack

    with kept_or_temporary(None) as directory:
        async with Stack(embedded_settings(directory)) as stack:
            with progress_of(paths, plain=False) as progress:
                batch = Batch(LocalGateway(stack, "me"), progress, force=False, timeout=60.0)
                files = await batch.run(paths)
            return [(file, await _job(stack, file), stack.store.now()) for file in files]


async def _job(stack: Any, file: Finalized) -> Job | None:
    job_id = file.answer.job_id if file.answer is not None else None
    job: Job | None = await stack.store.outbox.get(job_id) if job_id else None
    return job


def _lines(file: Finalized) -> Iterator[str]:
    """Yield the record for reading, a line each."""
    shown = file.document()
    yield f"{shown['title'] or 'no title'}  [{shown['category']}]"
    yield ""
    yield str(shown["overview"] or "")
    yield from _items("Action items", [_owned(item) for item in shown["action_items"] or ()])
    yield from _items("Events", [_dated(event) for event in shown["events"] or ()])
    yield from _items("Memories", [memory["text"] for memory in shown["memories"] or ()])


def _items(name: str, texts: list[str]) -> Iterator[str]:
    if texts:
        yield ""
        yield name
        yield from (f"  - {text}" for text in texts)


def _owned(item: dict[str, Any]) -> str:
    return f"{item['text']} ({item['speaker']})" if item.get("speaker") else str(item["text"])


def _dated(event: dict[str, Any]) -> str:
    return f"{event['title']} ({event['when']})" if event.get("when") else str(event["title"])


def _headline(file: Finalized) -> str:
    shown = file.document()
    return f"{file.path.name}: {shown['status']} after {shown['attempts']} attempt(s)"


def _plain(file: Finalized, job: Job | None, now: Instant) -> None:
    say(f"== {_headline(file)}")
    for line in _lines(file):
        indent = "    " if line.startswith("  - ") else ""
        for part in textwrap.wrap(line, _WIDTH, subsequent_indent=indent) or [""]:
            say(part)
    if job is not None:
        say()
        say(f"Job {job.job_id}")
        print_table(job_views.HISTORY_COLUMNS, _history(job, now))
    say()


def _history(job: Job, now: Instant) -> list[tuple[object, ...]]:
    return [job_views.history_row(entry, now) for entry in job.history]


def _panel(file: Finalized, job: Job | None, now: Instant) -> None:
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    parts: list[Any] = [Text(harmless(line)) for line in _lines(file)]
    if job is not None:
        parts += [Text(f"\nJob {job.job_id}", style="dim")]
        parts += [table(job_views.HISTORY_COLUMNS, _history(job, now))]
    title = Text(harmless(_headline(file)), style="bold green")
    console(sys.stdout).print(Panel(Group(*parts), title=title))
