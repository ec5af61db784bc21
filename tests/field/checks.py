"""The six checks after every case (`Checks after every case` of the field cases)."""

from __future__ import annotations

import re
from typing import Any

from listen_finalization.domain.codes import EffectCode, FailureCode, RefusalCode
from listen_finalization.domain.identity import job_id
from listen_finalization.domain.job import Job

from .house import CANARY, House

_KNOWN = {code.value for words in (FailureCode, RefusalCode, EffectCode) for code in words}
_OVER = ("completed", "failed")


async def all_checks(house: House, *, faults: bool = False) -> None:
    """Check a house that has settled; `faults` says that the case broke something on purpose."""
    jobs = await house.jobs()
    one_row_per_revision(house, jobs)
    terminal_together(house, jobs)
    effects_once(house, jobs)
    all_can_be_found(house)
    no_canary(house)
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


def terminal_together(house: House, jobs: list[Job]) -> None:
    """2. A conversation and the job that it names end together; earlier revisions are over."""
    by_id = {job.job_id: job for job in jobs}
    columns = "uid, conversation_id, status, discarded, deleted, finalization_job_id"
    for uid, key, status, discarded, deleted, named in house.sql(
        f"SELECT {columns} FROM conversations"
    ):
        job = by_id.get(named)
        if job is not None and not deleted:
            assert job.terminal is bool(status in _OVER or discarded)
        for other in jobs:
            if (other.uid, other.conversation_id) == (uid, key) and other is not job:
                assert other.terminal
        if status == "processing" and not deleted:
            assert job is not None


def effects_once(house: House, jobs: list[Job]) -> None:
    """3. Effects happen once for a revision; a run that repeats costs an attempt (17.7)."""
    memories = house.sql("SELECT uid, conversation_id, text FROM memories")
    assert len(memories) == len(set(memories))
    assert not house.sql(
        "SELECT job_id FROM step_results WHERE job_id NOT IN (SELECT job_id FROM"
        " conversation_finalization_jobs WHERE status NOT IN ('completed', 'dead_letter'))"
    )
    limit = house.stack.settings.tasks_max_attempts
    for key, runs in house.processor.runs.items():
        mine = [job for job in jobs if job.conversation_id == key or key == "photos"]
        assert runs <= sum(limit * (1 + job.replay_count) + job.releases for job in mine)


def all_can_be_found(house: House) -> None:
    """4. Every open row that does not wait for keys has a due time."""
    assert not house.sql(
        "SELECT job_id FROM conversation_finalization_jobs WHERE reconcile_after_at IS NULL"
        " AND status IN ('queued', 'leased')"
    )


def no_canary(house: House) -> None:
    """5. Nothing that was said is in an answer, a log line or a row; codes are closed."""
    for place in (house.told, house.watch.lines, [house.rows()]):
        assert not [text for text in place if CANARY in text]
    token = re.compile(r"eyJ[A-Za-z0-9_-]{10,}\.")
    assert not [line for line in [*house.told, *house.watch.lines] if token.search(line)]
    told = house.sql(
        "SELECT DISTINCT failure_code FROM conversation_finalization_jobs"
        " WHERE failure_code IS NOT NULL"
    )
    assert {code for (code,) in told} <= _KNOWN


def no_unhandled_exception(house: House) -> None:
    """6. No trace of an unhandled exception, and no 500 to a customer."""
    loud = ("Traceback", "request_fault", "Exception in ASGI", "never retrieved")
    assert not [line for line in house.watch.lines if any(word in line for word in loud)]
    assert not house.statuses[500]


def problem(answer: Any, status: int, kind: str) -> None:
    """Check one problem answer."""
    assert (answer.status_code, answer.json()["type"]) == (status, f"/problems/{kind}")
