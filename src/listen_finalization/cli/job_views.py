"""What is shown of a job: ids, states, times and bounded codes, chosen field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from listen_finalization.cli.times import duration, moment, written
from listen_finalization.domain.codes import Status
from listen_finalization.domain.explain import Explanation
from listen_finalization.domain.job import SECOND, HistoryEntry, Instant, Job

COLUMNS = ("JOB", "STATUS", "CONVERSATION", "REV", "ATTEMPTS", "CODE", "UPDATED", "DUE")
HISTORY_COLUMNS = ("WHEN", "AGE", "VERB", "FROM", "TO", "GEN", "EPOCH", "ACTOR", "CODE", "TIMES")


def row(job: Job, now: Instant) -> tuple[object, ...]:
    """Return one line of a list."""
    ended = job.outcome if job.status is Status.COMPLETED and job.failure_code is None else None
    return (
        job.job_id,
        job.status,
        job.conversation_id,
        job.finalization_revision,
        job.attempt_count,
        job.failure_code or ended,
        moment(job.updated_at, now),
        moment(job.reconcile_after_at, now),
    )


def view(job: Job, now: Instant) -> dict[str, Any]:
    """Return the job for JSON; claim ids stay out, they are the proof of ownership."""
    return {
        "job_id": job.job_id,
        "uid": job.uid,
        "conversation_id": job.conversation_id,
        "finalization_revision": job.finalization_revision,
        "status": job.status,
        "outcome": job.outcome,
        "failure_code": job.failure_code,
        "requires_byok": job.requires_byok,
        "force_process": job.force_process,
        "dispatch_generation": job.dispatch_generation,
        "lease_epoch": job.lease_epoch,
        "attempt_count": job.attempt_count,
        "handovers": job.handovers,
        "releases": job.releases,
        "replay_count": job.replay_count,
        "created_at": written(job.created_at),
        "age_seconds": round((now - job.created_at) / SECOND, 3),
        "updated_at": written(job.updated_at),
        "dispatched_at": written(job.dispatched_at),
        "leased_at": written(job.leased_at),
        "lease_expires_at": written(job.lease_expires_at),
        "completed_at": written(job.completed_at),
        "reconcile_after_at": written(job.reconcile_after_at),
        "effects": [
            {"step": e.step, "destination": e.destination, "state": e.state, "code": e.code}
            for e in job.effects
        ],
    }


def fields(job: Job, now: Instant) -> Iterator[tuple[str, object]]:
    """Yield the job as lines for people: every time with its age, effects one a line."""
    told = view(job, now)
    effects = told.pop("effects")
    told.pop("age_seconds")
    for name, value in told.items():
        instant = getattr(job, name) if name.endswith("_at") else None
        yield name, moment(instant, now) if instant is not None else value
    for effect in effects:
        name = f"effect {effect['step']}"
        state = f"{effect['state']} ({effect['code']})" if effect["code"] else effect["state"]
        yield name, f"{effect['destination']} {state}" if effect["destination"] else state


def history_row(entry: HistoryEntry, now: Instant) -> tuple[object, ...]:
    """Return one transition as a line."""
    return (
        written(entry.at),
        duration(max(now - entry.at, 0) / SECOND),
        entry.verb,
        entry.before or "none",
        entry.after,
        entry.generation,
        entry.epoch,
        entry.actor,
        entry.code,
        entry.count,
    )


def history_view(entry: HistoryEntry) -> dict[str, Any]:
    """Return one transition for JSON."""
    return {
        "at": written(entry.at),
        "verb": entry.verb,
        "from": entry.before,
        "to": entry.after,
        "dispatch_generation": entry.generation,
        "lease_epoch": entry.epoch,
        "actor": entry.actor,
        "code": entry.code,
        "count": entry.count,
    }


def explanation_view(job: Job, found: Explanation, command: str, now: Instant) -> dict[str, Any]:
    """Return an explanation for JSON; `command` is what to type."""
    reasons = [
        {
            "reason": one.reason,
            "code": one.code,
            "at": written(one.at),
            "count": one.count,
            "sentence": one.sentence(lambda at: written(at) or "at no known time"),
            "advice": one.advice,
        }
        for one in found.reasons
    ]
    return {
        "job_id": job.job_id,
        "status": job.status,
        "now": written(now),
        "reasons": reasons,
        "movers": list(found.movers),
        "next_command": command or None,
    }
