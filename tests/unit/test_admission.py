"""Admission: one commit, then a hand-over that cannot take the commit back."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from listen_finalization.domain.codes import Actor, FailureCode, RefusalCode
from listen_finalization.domain.commands import Admit, ClaimJob, Fail
from listen_finalization.domain.decision import Answer, Decision, Refused
from listen_finalization.domain.job import Job
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import StoreBusyError
from listen_finalization.observe.signals import Event
from listen_finalization.ports import Outbox
from listen_finalization.testing.workshop import Workshop


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncIterator[Workshop]:
    async with Workshop(tmp_path, policy=Policy()) as made:
        yield made


def job_of(answer: Answer) -> Job:
    assert isinstance(answer, Decision) and answer.job is not None
    return answer.job


async def test_an_admitted_job_is_handed_over_once_its_row_is_committed(
    workshop: Workshop,
) -> None:
    job = await workshop.admitted()
    assert [handed.job_id for handed, _ in workshop.dispatcher.handed] == [job.job_id]
    assert await workshop.job(job) == job
    assert (await workshop.conversation()).job_id == job.job_id
    assert workshop.signals.count(Event.JOB_ADMITTED) == 1


@pytest.mark.parametrize("error", [None, RuntimeError("canary"), TimeoutError()])
async def test_a_failed_hand_over_is_counted_and_the_row_keeps_its_due_time(
    error: Exception | None, workshop: Workshop
) -> None:
    workshop.dispatcher.takes = False
    workshop.dispatcher.error = error
    job = await workshop.admitted()
    assert job.status == "queued"
    assert job.reconcile_after_at == job.created_at + workshop.policy.handover
    assert workshop.signals.count(Event.ENQUEUE_FAILED) == 1


async def test_a_repeat_hands_the_unclaimed_job_over_again_under_the_same_generation(
    workshop: Workshop,
) -> None:
    first = await workshop.admitted()
    second = await workshop.admitted(force_process=True)
    assert second == first
    assert [job.dispatch_generation for job, _ in workshop.dispatcher.handed] == [1, 1]
    assert workshop.signals.count(Event.JOB_ADMITTED) == 1


async def test_a_repeat_hands_no_claimed_job_over(workshop: Workshop) -> None:
    job = await workshop.admitted()
    await workshop.outbox.apply(ClaimJob(job.job_id, 1, "a" * 32))
    await workshop.admitted()
    assert len(workshop.dispatcher.handed) == 1


async def test_a_repeat_hands_no_job_over_that_waits_after_a_claim(workshop: Workshop) -> None:
    job = await workshop.admitted()
    claimed = job_of(await workshop.outbox.apply(ClaimJob(job.job_id, 1, "a" * 32)))
    failed = job_of(await workshop.outbox.apply(Fail(claimed.claim, FailureCode.PROCESSOR_ERROR)))
    assert (failed.status, failed.lease_epoch) == ("queued", 1)
    assert await workshop.admitted() == failed
    assert len(workshop.dispatcher.handed) == 1


async def test_a_claimed_job_that_is_attached_again_is_handed_over_again_and_once(
    workshop: Workshop,
) -> None:
    """The application reopened the conversation: its open row is taken over, its owner fenced."""
    job = await workshop.admitted()
    await workshop.outbox.apply(ClaimJob(job.job_id, 1, "a" * 32))
    with contextlib.closing(sqlite3.connect(workshop.directory / "listen.db")) as other:
        other.execute("UPDATE conversations SET status = 'in_progress'")
        other.commit()
    attached = await workshop.admitted()
    assert (attached.job_id, attached.status) == (job.job_id, "queued")
    assert (attached.dispatch_generation, attached.lease_epoch) == (2, 1)
    assert [handed for handed, _ in workshop.dispatcher.handed] == [job, attached]
    await workshop.admitted()
    assert len(workshop.dispatcher.handed) == 2


@pytest.mark.parametrize("keys", [False, True])
async def test_a_byok_job_is_handed_to_no_queue(keys: bool, workshop: Workshop) -> None:
    job = await workshop.admitted(byok=True, holds_keys=keys, actor=Actor.LISTEN)
    assert job.status == ("queued" if keys else "blocked_byok")
    assert workshop.dispatcher.handed == []


async def test_a_refused_admission_hands_nothing_over_and_is_counted_by_its_code(
    workshop: Workshop,
) -> None:
    answer = await workshop.admission.admit(Admit("ada", "absent"))
    assert answer == Refused(RefusalCode.CONVERSATION_NOT_FOUND)
    assert workshop.dispatcher.handed == []
    assert workshop.signals.count(Event.ADMISSION_REFUSED, answer.code) == 1


async def test_a_store_fault_is_the_callers_and_hands_nothing_over(tmp_path: Path) -> None:
    class Busy:
        def __init__(self, _: Outbox) -> None: ...

        async def apply(self, _: object) -> Answer:
            raise StoreBusyError

    async with Workshop(tmp_path, wrapped=Busy) as workshop:  # type: ignore[arg-type]
        await workshop.spoken()
        with pytest.raises(StoreBusyError):
            await workshop.admission.admit(Admit("ada", "c1"))
        assert workshop.dispatcher.handed == []


async def test_the_same_admission_sent_twice_at_once_is_one_job(workshop: Workshop) -> None:
    await workshop.spoken()
    answers = await asyncio.gather(
        *(workshop.admission.admit(Admit("ada", "c1")) for _ in range(20))
    )
    assert len({job_of(answer).job_id for answer in answers}) == 1
    assert workshop.signals.count(Event.JOB_ADMITTED) == 1
