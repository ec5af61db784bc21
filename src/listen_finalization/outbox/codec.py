"""Rows of the store to values of the domain and back; what cannot be read says so, by class."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, TypeVar

from listen_finalization.domain.codes import (
    Actor,
    ConversationStatus,
    EffectCode,
    EffectState,
    FailureCode,
    Outcome,
    Status,
    Step,
    Verb,
)
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.job import (
    SCHEMA_VERSION,
    Effect,
    HistoryEntry,
    IllegalJobError,
    Instant,
    Job,
)
from listen_finalization.errors import RowUnreadableError

JOB_COLUMNS = 28
CONVERSATION_COLUMNS = 14
ROOM = 1_048_576 - 65_536 - 65_536 - 16_384
"""Bytes of the application's own fields beyond which a document has no room for a record.

Firestore holds 1 MiB a document ("Quotas and limits"); 64 KiB stay free, a record is at most
64 KiB and a calendar context 16 KiB. The embedded store keeps the same bound, so that a
conversation can move.
"""

dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
"""Compact JSON text, the form of every structured column; a NaN raises `ValueError`."""


def encode_effects(effects: Sequence[Effect]) -> str:
    if not effects:
        return "[]"
    return dumps([[e.step, e.state, e.destination, e.code, e.tries] for e in effects])


def encode_history(history: Sequence[HistoryEntry]) -> str:
    """Return the history as JSON text; every word of it is of a closed list and needs no escape."""
    return f"[{','.join(map(_line, history))}]"


def _line(h: HistoryEntry) -> str:
    before = "null" if h.before is None else f'"{h.before.value}"'
    code = "null" if h.code is None else f'"{h.code.value}"'
    return (
        f'[{h.at},"{h.verb.value}",{before},"{h.after.value}",{h.generation},{h.epoch},'
        f'"{h.actor.value}",{code},{h.count}]'
    )


T = TypeVar("T", bound=StrEnum)


def _words(kind: type[T]) -> dict[str | None, T]:
    """Return the members by their word: calling an enum costs several times a look-up."""
    return {member.value: member for member in kind}


def _words_or_none(kind: type[T]) -> dict[str | None, T | None]:
    return {**_words(kind), None: None}


_STATUS, _STATUS_OR_NONE = _words(Status), _words_or_none(Status)
_VERB, _ACTOR, _STEP, _STATE = _words(Verb), _words(Actor), _words(Step), _words(EffectState)
_FAILURE, _OUTCOME = _words_or_none(FailureCode), _words_or_none(Outcome)
_EFFECT = _words_or_none(EffectCode)


def _effect(line: list[Any]) -> Effect:
    step, state, destination, code, tries = line
    return Effect(_STEP[step], _STATE[state], destination, _EFFECT[code], tries)


def _entry(line: list[Any]) -> HistoryEntry:
    at, verb, before, after, generation, epoch, actor, code, count = line
    return HistoryEntry(
        at,
        _VERB[verb],
        _STATUS_OR_NONE[before],
        _STATUS[after],
        generation,
        epoch,
        _ACTOR[actor],
        _FAILURE[code],
        count,
    )


def mutable_columns(job: Job) -> tuple[Any, ...]:
    """Return the values of `update_job`, in its order."""
    return (
        job.schema_version,
        job.status,
        job.requires_byok,
        job.force_process,
        job.updated_at,
        job.dispatched_at,
        job.dispatch_generation,
        job.lease_epoch,
        job.claim_id,
        job.leased_at,
        job.lease_expires_at,
        job.content_version,
        job.attempt_count,
        job.handovers,
        job.releases,
        job.last_task_retry,
        job.replay_count,
        job.failure_code,
        job.outcome,
        job.completed_at,
        job.reconcile_after_at,
        encode_effects(job.effects),
        encode_history(job.history),
    )


def all_columns(job: Job) -> tuple[Any, ...]:
    """Return the values of `insert_job`, in its order."""
    schema, status, byok, force, *rest = mutable_columns(job)
    identity = (job.job_id, schema, job.uid, job.conversation_id, job.finalization_revision)
    return (*identity, status, byok, force, job.created_at, *rest)


def decode_job(row: Sequence[Any]) -> Job:
    """Build the job of a row in column order.

    Raises `RowUnreadableError` where the row is newer than this code or holds what it cannot mean.
    """
    if row[1] > SCHEMA_VERSION:
        raise RowUnreadableError
    try:
        return Job(
            job_id=row[0],
            schema_version=row[1],
            uid=row[2],
            conversation_id=row[3],
            finalization_revision=row[4],
            status=_STATUS[row[5]],
            requires_byok=bool(row[6]),
            force_process=bool(row[7]),
            created_at=Instant(row[8]),
            updated_at=Instant(row[9]),
            dispatched_at=Instant(row[10]),
            dispatch_generation=row[11],
            lease_epoch=row[12],
            claim_id=row[13],
            leased_at=row[14],
            lease_expires_at=row[15],
            content_version=row[16],
            attempt_count=row[17],
            handovers=row[18],
            releases=row[19],
            last_task_retry=row[20],
            replay_count=row[21],
            failure_code=_FAILURE[row[22]],
            outcome=_OUTCOME[row[23]],
            completed_at=row[24],
            reconcile_after_at=row[25],
            effects=tuple(map(_effect, json.loads(row[26]))),
            history=tuple(map(_entry, json.loads(row[27]))),
        )
    except (ValueError, TypeError, LookupError, IllegalJobError) as error:
        raise RowUnreadableError from error


_CONVERSATION = _words(ConversationStatus)


def decode_conversation(row: Sequence[Any]) -> Conversation:
    """Build the decisive fields of a conversation row in column order."""
    status = _CONVERSATION.get(row[2], ConversationStatus.OTHER)
    return Conversation(
        uid=row[0],
        conversation_id=row[1],
        status=status,
        discarded=bool(row[3]),
        deleted=bool(row[4]),
        content_version=row[5],
        has_content=bool(row[6] or row[7]),
        requires_byok=bool(row[8]),
        job_id=row[9],
        revision=row[10],
        wanted_version=row[11],
        admitted_at=row[12],
        has_room=row[13] <= ROOM,
    )


def memory_id(conversation_id: str, text: str) -> str:
    """Name a memory of a conversation by what it says, white space and letter case apart."""
    said = dumps([conversation_id, " ".join(text.casefold().split())])
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:32]
