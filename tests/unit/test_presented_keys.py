"""Keys in hand again: the job waits for their holder for a session limit, counted once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from listen_finalization.domain.codes import Actor, Status, Verb
from listen_finalization.domain.commands import PresentKeys
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import HistoryEntry, Instant, Job
from listen_finalization.testing.clock import FakeClock
from listen_finalization.testing.workshop import EMBEDDED, Workshop


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def workshop(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Workshop]:
    async with Workshop(tmp_path, clock=clock) as made:
        yield made


async def presented(workshop: Workshop, job: Job) -> Decision:
    answer = await workshop.outbox.apply(PresentKeys(job.job_id, "ada", "c1"))
    assert isinstance(answer, Decision)
    return answer


async def gets_a_session_limit_once(workshop: Workshop, job: Job, clock: FakeClock) -> None:
    assert job.status is Status.QUEUED
    assert job.reconcile_after_at is not None and job.reconcile_after_at <= clock()
    now = clock()
    entry = HistoryEntry(now, Verb.PRESENT_KEYS, Status.QUEUED, Status.QUEUED, 1, 0, Actor.LISTEN)
    expected = replace(
        job,
        requires_byok=True,
        updated_at=now,
        reconcile_after_at=Instant(now + EMBEDDED.session_limit),
        history=(*job.history, entry),
    )
    answer = await presented(workshop, job)
    assert (answer.changed, answer.job) == (True, expected)
    assert await workshop.job(job) == expected

    clock.advance(1)
    again = await presented(workshop, job)
    assert (again.changed, again.job) == (False, expected)
    assert await workshop.job(job) == expected


async def test_a_queued_job_whose_session_limit_has_lapsed_gets_a_new_one(
    workshop: Workshop, clock: FakeClock
) -> None:
    job = await workshop.admitted(byok=True, holds_keys=True, actor=Actor.LISTEN)
    clock.advance(EMBEDDED.session_limit / 1_000_000)
    await gets_a_session_limit_once(workshop, job, clock)


async def test_a_due_job_marked_byok_after_its_admission_gets_a_session_limit(
    workshop: Workshop, clock: FakeClock
) -> None:
    job = await workshop.admitted()
    assert not job.requires_byok
    await workshop.spoken(byok=True)
    await gets_a_session_limit_once(workshop, job, clock)


async def test_a_session_limit_that_runs_is_not_made_longer(
    workshop: Workshop, clock: FakeClock
) -> None:
    job = await workshop.admitted(byok=True, holds_keys=True, actor=Actor.LISTEN)
    clock.advance(EMBEDDED.session_limit / 1_000_000 - 1)
    answer = await presented(workshop, job)
    assert (answer.changed, answer.job) == (False, job)
    assert await workshop.job(job) == job
