"""The six checks after every case (`Checks after every case` of the field cases)."""

from __future__ import annotations

import re
from typing import Any

from integration.invariants import Rows, Tables
from listen_finalization.domain.codes import EffectCode, FailureCode, RefusalCode
from listen_finalization.domain.identity import job_id
from listen_finalization.domain.job import Job

from .house import CANARY, House

_KNOWN = {code.value for words in (FailureCode, RefusalCode, EffectCode) for code in words}
_OVER = ("completed", "failed")


async def all_checks(house: House, *, faults: bool = False) -> None:
    """Check a house that has settled; `faults` says that the case broke something on purpose."""
    jobs, tables = await house.jobs(), await house.ground.tables()
    one_row_per_revision(house, jobs)
    terminal_together(jobs, tables.conversations)
    effects_once(house, jobs, tables)
    all_can_be_found(jobs)
    no_canary(house, repr(await house.ground.own()), jobs)
    if not faults:
        no_unhandled_exception(house)


def one_row_per_revision(house: House, jobs: list[Job]) -> None:
    """1. One row per (user, conversation, revision); generation and epoch never fall."""
    places = [(job.uid, job.conversation_id, job.finalization_revision) for job in jobs]
    assert len(places) == len(set(places))
    for job in jobs:
        assert job.job_id == job_id(job.uid, job.conversation_id, job.finalization_revision)
        seen = house.high.get(job.job_id, (0, 0))
        assert job.dispatch_generation >= seen[0] and job.lease_epoch >= seen[1]
        house.high[job.job_id] = (job.dispatch_generation, job.lease_epoch)
        marks = [(entry.generation, entry.epoch) for entry in job.history]
        assert marks == sorted(marks)


def terminal_together(jobs: list[Job], conversations: Rows) -> None:
    """2. A conversation and the job that it names end together; earlier revisions are over."""
    by_id = {job.job_id: job for job in jobs}
    for row in conversations:
        job = by_id.get(row["finalization_job_id"])
        if job is not None and not row["deleted"]:
            assert job.terminal is bool(row["status"] in _OVER or row["discarded"])
        place = (row["uid"], row["conversation_id"])
        for other in jobs:
            if (other.uid, other.conversation_id) == place and other is not job:
                assert other.terminal
        if row["status"] == "processing" and not row["deleted"]:
            assert job is not None


def effects_once(house: House, jobs: list[Job], tables: Tables) -> None:
    """3. Effects happen once for a revision; a run that repeats costs an attempt (17.7)."""
    memories = [(row["uid"], row["conversation_id"], row["text"]) for row in tables.memories]
    assert len(memories) == len(set(memories))
    still_open = {job.job_id for job in jobs if not job.terminal}
    assert {row["job_id"] for row in tables.results} <= still_open
    limit = house.site.settings.tasks_max_attempts
    for key, runs in house.processor.runs.items():
        mine = [job for job in jobs if job.conversation_id == key or key == "photos"]
        assert runs <= sum(limit * (1 + job.replay_count) + job.releases for job in mine)


def all_can_be_found(jobs: list[Job]) -> None:
    """4. Every open row that does not wait for keys has a due time."""
    for job in jobs:
        assert job.status not in ("queued", "leased") or job.reconcile_after_at is not None


def no_canary(house: House, own: str, jobs: list[Job]) -> None:
    """5. Nothing that was said is in an answer, a log line or a row; codes are closed."""
    for place in (house.told, house.watch.lines, [own]):
        assert not [text for text in place if CANARY in text]
    token = re.compile(r"eyJ[A-Za-z0-9_-]{10,}\.")
    assert not [line for line in [*house.told, *house.watch.lines] if token.search(line)]
    assert {job.failure_code for job in jobs if job.failure_code is not None} <= _KNOWN


def no_unhandled_exception(house: House) -> None:
    """6. No trace of an unhandled exception, and no 500 to a customer."""
    loud = ("Traceback", "request_fault", "Exception in ASGI", "never retrieved")
    assert not [line for line in house.watch.lines if any(word in line for word in loud)]
    assert not house.statuses[500]


def problem(answer: Any, status: int, kind: str) -> None:
    """Check one problem answer."""
    assert (answer.status_code, answer.json()["type"]) == (status, f"/problems/{kind}")
