"""Rows of a newer version and damaged rows: refused, never overwritten, never in the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from listen_finalization.domain.codes import RefusalCode
from listen_finalization.domain.commands import Checkpoint, Redispatch
from listen_finalization.domain.decision import Refused
from listen_finalization.domain.job import SCHEMA_VERSION, Instant, Job
from listen_finalization.errors import RowUnreadableError
from listen_finalization.outbox.conformance.subject import (
    CONVERSATION,
    POLICY,
    UID,
    Subject,
    admit,
    admitted,
    claim_of,
    held,
    leased,
    row,
)

_NEWER: Mapping[str, Any] = {"schema_version": SCHEMA_VERSION + 1}
_DAMAGED: Mapping[str, Any] = {"status": "paused"}


async def _unreadable(subject: Subject, job_id: str) -> bool:
    try:
        await subject.outbox.get(job_id)
    except RowUnreadableError:
        return True
    return False


async def newer_row_is_refused_by_every_command_without_an_attempt(subject: Subject) -> None:
    job = await leased(subject)
    await subject.set_job(job.job_id, _NEWER)
    subject.advance(POLICY.lease)
    for command in (
        admit(),
        claim_of(job, "claim-2"),
        Checkpoint(job.claim),
        Redispatch(job.job_id, 1),
    ):
        answer = await subject.outbox.apply(command)
        assert answer == Refused(RefusalCode.SCHEMA_NEWER)
    assert await _unreadable(subject, job.job_id)
    await subject.set_job(job.job_id, {"schema_version": SCHEMA_VERSION})
    assert await row(subject, job.job_id) == job


async def newer_row_at_the_next_revision_refuses_the_admission(subject: Subject) -> None:
    job = await admitted(subject)
    await subject.set_job(job.job_id, _NEWER)
    fresh = {"status": "in_progress", "finalization_job_id": None, "finalization_revision": None}
    await subject.set_conversation(UID, CONVERSATION, fresh)
    assert await subject.outbox.apply(admit()) == Refused(RefusalCode.SCHEMA_NEWER)
    assert await subject.job_count() == 1


async def damaged_row_is_told_by_the_due_query_and_hides_nobody(subject: Subject) -> None:
    damaged = await admitted(subject, "damaged")
    subject.advance(1_000)
    healthy = await admitted(subject, "healthy")
    await subject.set_job(damaged.job_id, _DAMAGED)
    subject.advance(POLICY.handover)
    page = await subject.outbox.due(10)
    assert [(due.job_id, due.status) for due in page.rows] == [
        (damaged.job_id, None),
        (healthy.job_id, healthy.status),
    ]
    behind = await subject.outbox.due(10, after=page.rows[0])
    assert behind.rows == page.rows[1:]
    assert await _unreadable(subject, damaged.job_id)


async def unreadable_rows_do_not_end_a_list(subject: Subject) -> None:
    newer = await admitted(subject, "newer")
    subject.advance(1_000)
    healthy = await admitted(subject, "healthy")
    for fields in (_NEWER, {"schema_version": SCHEMA_VERSION, "failure_code": "of-tomorrow"}):
        await subject.set_job(newer.job_id, fields)
        page = await subject.outbox.list(limit=10)
        assert [job.job_id for job in page.jobs] == [healthy.job_id]
        assert page.unreadable == (newer.job_id,)


async def set_aside_moves_the_due_time_as_it_was_seen_and_nothing_else(subject: Subject) -> None:
    job = await admitted(subject)
    await subject.set_job(job.job_id, _NEWER)
    subject.advance(POLICY.handover)
    seen = Instant(held(job.reconcile_after_at))
    assert not await subject.outbox.set_aside(job.job_id, Instant(seen + 1), 60_000_000)
    assert not await subject.outbox.set_aside("none", seen, 60_000_000)
    assert await subject.outbox.set_aside(job.job_id, seen, 60_000_000)
    assert not await subject.outbox.set_aside(job.job_id, seen, 60_000_000)
    assert (await subject.outbox.due(10)).rows == ()
    await _due_moved_alone(subject, job)


async def _due_moved_alone(subject: Subject, job: Job) -> None:
    await subject.set_job(job.job_id, {"schema_version": SCHEMA_VERSION})
    after = await row(subject, job.job_id)
    assert held(after.reconcile_after_at) > held(job.reconcile_after_at)
    await subject.set_job(job.job_id, {"reconcile_after_at": job.reconcile_after_at})
    assert await row(subject, job.job_id) == job
