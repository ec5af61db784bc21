"""Jobs of every kind at a fixed time, and a data directory that holds them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

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
from listen_finalization.domain.job import Effect, HistoryEntry, Instant, Job, seconds
from listen_finalization.domain.policy import Policy
from listen_finalization.outbox.codec import all_columns
from listen_finalization.outbox.sqlite import SqliteStore
from listen_finalization.outbox.statements import STATEMENTS

NOW = Instant(1_796_000_000_000_000)
CLAIM = "ab" * 16


def at(offset: float) -> Instant:
    """Return the instant `offset` seconds from the fixed time."""
    return Instant(NOW + seconds(offset))


QUEUED = Job(
    "00000000-0000-8000-8000-000000000001",
    "ada",
    "standup",
    1,
    Status.QUEUED,
    requires_byok=False,
    force_process=False,
    created_at=at(-60),
    updated_at=at(-60),
    dispatched_at=at(-60),
    reconcile_after_at=at(-60),
    history=(HistoryEntry(at(-60), Verb.ADMIT, None, Status.QUEUED, 1, 0, Actor.CUSTOMER),),
)
FAILED_ONCE = replace(
    QUEUED,
    job_id="00000000-0000-8000-8000-000000000002",
    conversation_id="retro",
    lease_epoch=1,
    attempt_count=1,
    failure_code=FailureCode.PROVIDER_ERROR,
    reconcile_after_at=at(90),
    created_at=at(-7_200),
    claim_id=CLAIM,
    history=(
        *QUEUED.history,
        HistoryEntry(at(-50), Verb.CLAIM, Status.QUEUED, Status.LEASED, 1, 1, Actor.WORKER),
        HistoryEntry(
            at(-40),
            Verb.FAIL,
            Status.LEASED,
            Status.QUEUED,
            1,
            1,
            Actor.WORKER,
            FailureCode.PROVIDER_ERROR,
        ),
    ),
)
LEASED = replace(
    FAILED_ONCE,
    job_id="00000000-0000-8000-8000-000000000003",
    conversation_id="review",
    status=Status.LEASED,
    leased_at=at(-5),
    lease_expires_at=at(10),
    reconcile_after_at=at(10),
    content_version=1,
    created_at=at(-3_600),
)
BLOCKED = replace(
    QUEUED,
    job_id="00000000-0000-8000-8000-000000000004",
    conversation_id="interview",
    status=Status.BLOCKED_BYOK,
    requires_byok=True,
    reconcile_after_at=None,
    created_at=at(-400_000),
)
DEAD = replace(
    FAILED_ONCE,
    job_id="00000000-0000-8000-8000-000000000005",
    conversation_id="planning",
    status=Status.DEAD_LETTER,
    outcome=Outcome.FAILED,
    lease_epoch=5,
    attempt_count=5,
    reconcile_after_at=None,
    created_at=at(-90_000),
)
COMPLETED = replace(
    QUEUED,
    job_id="00000000-0000-8000-8000-000000000006",
    conversation_id="visit",
    status=Status.COMPLETED,
    outcome=Outcome.SUCCESS,
    completed_at=at(-30),
    reconcile_after_at=None,
    lease_epoch=1,
    attempt_count=1,
    created_at=at(-61),
    effects=(
        Effect(Step.ENRICH, EffectState.DONE, code=EffectCode.STORED),
        Effect(Step.MEMORIES, EffectState.DONE, code=EffectCode.STORED),
        Effect(Step.FANOUT, EffectState.DROPPED, "crm", EffectCode.HTTP_4XX, 1),
    ),
)
ALL = (QUEUED, FAILED_ONCE, LEASED, BLOCKED, DEAD, COMPLETED)


def directory_with(directory: Path, jobs: Sequence[Job]) -> Path:
    """Make a data directory as a stack leaves it, with these rows in it."""
    directory.mkdir(mode=0o700, exist_ok=True)
    SqliteStore(directory / "listen.db", Policy()).close()
    with closing(sqlite3.connect(directory / "listen.db")) as connection:
        for job in jobs:
            connection.execute(STATEMENTS["insert_job"], all_columns(job))
        connection.commit()
    return directory
