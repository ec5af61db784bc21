"""`jobs`: list, show, history, explain; reads only, also while a stack runs on the directory."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from listen_finalization.cli import job_views
from listen_finalization.cli.options import examples, output_option, stored_data
from listen_finalization.cli.place import existing, setting_of
from listen_finalization.cli.printing import print_fields, print_json, print_table, say
from listen_finalization.cli.reading import StoredJobs
from listen_finalization.cli.times import moment
from listen_finalization.domain.codes import Status
from listen_finalization.domain.explain import Because, Explanation, Facts, Next, explain
from listen_finalization.domain.job import Instant, Job
from listen_finalization.ports import JobPage

T = TypeVar("T")
_ID = click.argument("job_id", metavar="JOB_ID")


@click.group(short_help="List, show and explain jobs.")
def jobs() -> None:
    """Look at the jobs of a data directory: ids, states, times and codes, never content."""


@jobs.command("list", epilog=examples("jobs list --status dead_letter", "jobs list -o json"))
@click.option("--status", type=click.Choice([s.value for s in Status]), help="Only this status.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True)
@click.option("--cursor", metavar="C", help="Where the last page ended, as it was printed.")
@stored_data
@output_option
def list_jobs(
    status: str | None, limit: int, cursor: str | None, data: str | None, output: str
) -> None:
    """List jobs, newest first."""
    wanted = None if status is None else Status(status)

    async def read(stored: StoredJobs) -> tuple[JobPage, Instant]:
        return await stored.page(wanted, limit, cursor), await stored.now()

    page, now = _read(data, read)
    if output == "json":
        shown = [job_views.view(job, now) for job in page.jobs]
        print_json({"jobs": shown, "cursor": page.cursor, "unreadable": list(page.unreadable)})
        return
    print_table(job_views.COLUMNS, [job_views.row(job, now) for job in page.jobs])
    for job_id in page.unreadable:
        say(f"unreadable: {job_id}: of a newer version, or damaged", to_stderr=True)
    if page.cursor is not None:
        say(f"more: --cursor {page.cursor}", to_stderr=True)


@jobs.command(epilog=examples("jobs show JOB_ID --data ./data"))
@_ID
@stored_data
@output_option
def show(job_id: str, data: str | None, output: str) -> None:
    """Show one job: every field but the claim id."""
    job, now = _job(data, job_id)
    if output == "json":
        print_json(job_views.view(job, now))
    else:
        print_fields(job_views.fields(job, now))


@jobs.command(epilog=examples("jobs history JOB_ID --data ./data"))
@_ID
@stored_data
@output_option
def history(job_id: str, data: str | None, output: str) -> None:
    """Show the last 32 transitions of one job, oldest first."""
    job, now = _job(data, job_id)
    if output == "json":
        told = [job_views.history_view(entry) for entry in job.history]
        print_json({"job_id": job.job_id, "history": told})
    else:
        rows = [job_views.history_row(entry, now) for entry in job.history]
        print_table(job_views.HISTORY_COLUMNS, rows)


@jobs.command("explain", epilog=examples("jobs explain JOB_ID --data ./data"))
@_ID
@stored_data
@output_option
def explain_job(job_id: str, data: str | None, output: str) -> None:
    """Say why a job is not running, who can move it and what to type."""
    attempts: int = setting_of("tasks_max_attempts")

    async def read(stored: StoredJobs) -> Facts:
        return await stored.facts(job_id, max_attempts=attempts)

    facts = _read(data, read)
    found = explain(facts)
    command = typed(found.next, facts.job, data)
    if output == "json":
        print_json(job_views.explanation_view(facts.job, found, command, facts.now))
    else:
        _tell(facts, found, command)


def _tell(facts: Facts, found: Explanation, command: str) -> None:
    say(f"{facts.job.job_id} is {facts.job.status}.")
    for number, because in enumerate(found.reasons, 1):
        say(f"{number}. {_sentence(because, facts.now)}")
        if because.advice:
            say(f"   {because.code}: {because.advice}")
    say(f"Who can move it: {', '.join(found.movers)}.")
    say(f"Type next: {command or 'nothing, it is over'}")


def _sentence(because: Because, now: Instant) -> str:
    return because.sentence(lambda at: moment(at, now) or "at no known time")


def typed(following: Next, job: Job, data: str | None) -> str:
    """Return the command line of what to do next, for this job and directory; empty for none."""
    if following is Next.NOTHING:
        return ""
    words = [job.job_id if word == "JOB" else word for word in following.split()]
    if following is Next.DESTINATIONS:
        words += ["--uid", job.uid]
    if data is not None and following is not Next.CONFIGURATION:
        words += ["--data", data]
    return shlex.join(["listen-finalization", *words])


def _job(data: str | None, job_id: str) -> tuple[Job, Instant]:
    async def read(stored: StoredJobs) -> tuple[Job, Instant]:
        return await stored.get(job_id), await stored.now()

    return _read(data, read)


def _read(data: str | None, query: Callable[[StoredJobs], Awaitable[T]]) -> T:
    """Run one query on the directory's file and close it."""
    directory = existing(data)

    async def read() -> T:
        async with StoredJobs(directory) as stored:
            return await query(stored)

    return asyncio.run(read())
