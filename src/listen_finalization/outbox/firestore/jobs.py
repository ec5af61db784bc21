"""Job documents to values of the domain and back; field names are those of contract 3."""

from __future__ import annotations

from typing import Any

from listen_finalization.domain.codes import (
    Actor,
    EffectCode,
    EffectState,
    FailureCode,
    Outcome,
    Status,
    Step,
    Verb,
)
from listen_finalization.domain.job import (
    SCHEMA_VERSION,
    Effect,
    HistoryEntry,
    IllegalJobError,
    Instant,
    Job,
)
from listen_finalization.errors import RowUnreadableError
from listen_finalization.outbox.firestore.fields import Reading
from listen_finalization.outbox.firestore.names import last_part, nameable
from listen_finalization.outbox.firestore.rpc import Document
from listen_finalization.outbox.firestore.values import encode, encode_instant
from listen_finalization.ports import DueRow

_IDENTITY = ("uid", "conversation_id", "finalization_revision")
_PLAIN = (
    "schema_version",
    "status",
    "requires_byok",
    "force_process",
    "dispatch_generation",
    "lease_epoch",
    "claim_id",
    "content_version",
    "attempt_count",
    "handovers",
    "releases",
    "last_task_retry",
    "replay_count",
    "failure_code",
    "outcome",
)
_TIMES = (
    "updated_at",
    "dispatched_at",
    "leased_at",
    "lease_expires_at",
    "completed_at",
    "reconcile_after_at",
)
MUTABLE = (*_PLAIN, *_TIMES, "effects", "history")
"""The fields that an update writes, or removes where the job has none."""

JOB_FIELDS = (*_IDENTITY, "created_at", *MUTABLE)


def encode_job(job: Job) -> dict[str, Any]:
    """Return every field of a new document; what the job does not have is absent."""
    fields = {name: encode(getattr(job, name)) for name in _IDENTITY}
    return fields | {"created_at": encode_instant(job.created_at)} | encode_mutable(job)


def encode_mutable(job: Job) -> dict[str, Any]:
    """Return the fields among `MUTABLE` that the job has."""
    plain = {name: getattr(job, name) for name in _PLAIN}
    times = {name: getattr(job, name) for name in _TIMES}
    return (
        {name: encode(value) for name, value in plain.items() if value is not None}
        | {name: encode_instant(value) for name, value in times.items() if value is not None}
        | {
            "effects": encode([_effect(effect) for effect in job.effects]),
            "history": encode([_entry(entry) for entry in job.history]),
        }
    )


def _effect(effect: Effect) -> dict[str, Any]:
    told = {
        "step": effect.step,
        "state": effect.state,
        "destination": effect.destination,
        "code": effect.code,
        "tries": effect.tries,
    }
    return {name: value for name, value in told.items() if value is not None}


def _entry(entry: HistoryEntry) -> dict[str, Any]:
    told = {
        "at": encode_instant(entry.at),
        "verb": entry.verb,
        "from": entry.before,
        "to": entry.after,
        "generation": entry.generation,
        "epoch": entry.epoch,
        "actor": entry.actor,
        "code": entry.code,
        "count": entry.count,
    }
    return {name: value for name, value in told.items() if value is not None}


def decode_job(document: Document) -> Job:
    """Build the job of a document.

    Raises `RowUnreadableError` where it is newer than this code or holds what it cannot mean.
    """
    reading = Reading(document.fields)
    if reading.required_number("schema_version") > SCHEMA_VERSION:
        raise RowUnreadableError
    try:
        job = _decoded(last_part(document.name), reading)
    except (ValueError, TypeError, IllegalJobError) as error:
        raise RowUnreadableError from error
    if not nameable(job.uid, job.conversation_id):
        raise RowUnreadableError
    return job


def _decoded(job_id: str, r: Reading) -> Job:
    code, outcome = r.text("failure_code"), r.text("outcome")
    return Job(
        job_id=job_id,
        schema_version=r.required_number("schema_version"),
        uid=r.required_text("uid"),
        conversation_id=r.required_text("conversation_id"),
        finalization_revision=r.required_number("finalization_revision"),
        status=Status(r.required_text("status")),
        requires_byok=r.flag("requires_byok"),
        force_process=r.flag("force_process"),
        created_at=r.required_instant("created_at"),
        updated_at=r.required_instant("updated_at"),
        dispatched_at=r.required_instant("dispatched_at"),
        dispatch_generation=r.required_number("dispatch_generation"),
        lease_epoch=r.required_number("lease_epoch"),
        claim_id=r.text("claim_id"),
        leased_at=r.instant("leased_at"),
        lease_expires_at=r.instant("lease_expires_at"),
        content_version=r.number("content_version"),
        attempt_count=r.required_number("attempt_count"),
        handovers=r.required_number("handovers"),
        releases=r.required_number("releases"),
        last_task_retry=r.number("last_task_retry"),
        replay_count=r.required_number("replay_count"),
        failure_code=None if code is None else FailureCode(code),
        outcome=None if outcome is None else Outcome(outcome),
        completed_at=r.instant("completed_at"),
        reconcile_after_at=r.instant("reconcile_after_at"),
        effects=tuple(map(_read_effect, r.maps("effects"))),
        history=tuple(map(_read_entry, r.maps("history"))),
    )


def _read_effect(r: Reading) -> Effect:
    code = r.text("code")
    return Effect(
        Step(r.required_text("step")),
        EffectState(r.required_text("state")),
        r.text("destination"),
        None if code is None else EffectCode(code),
        r.required_number("tries"),
    )


def _read_entry(r: Reading) -> HistoryEntry:
    before, code = r.text("from"), r.text("code")
    return HistoryEntry(
        r.required_instant("at"),
        Verb(r.required_text("verb")),
        None if before is None else Status(before),
        Status(r.required_text("to")),
        r.required_number("generation"),
        r.required_number("epoch"),
        Actor(r.required_text("actor")),
        None if code is None else FailureCode(code),
        r.required_number("count"),
    )


_STATUSES = frozenset(Status)


def decode_due(document: Document, due: Instant) -> DueRow:
    """Return what the due query tells of a row, damaged fields as their least value."""
    status = _told(document, "status", "string_value")
    return DueRow(
        last_part(document.name),
        _told(document, "dispatch_generation", "integer_value") or 0,
        Status(status) if status in _STATUSES else None,
        bool(_told(document, "requires_byok", "boolean_value")),
        _told(document, "handovers", "integer_value") or 0,
        due,
        _told(document, "claim_id", "string_value"),
    )


def _told(document: Document, name: str, kind: str) -> Any:
    if name not in document.fields or document.fields[name].WhichOneof("value_type") != kind:
        return None
    return getattr(document.fields[name], kind)


def due_of(document: Document) -> Instant | None:
    """Return the due time of a row, read without the rest of it."""
    return Reading(document.fields).instant("reconcile_after_at")
