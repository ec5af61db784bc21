"""The inline mode: no queue; the pusher's process runs what is due, for users who never return."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from listen_finalization.admission import Admission
from listen_finalization.dispatch.inline import InlineDispatcher
from listen_finalization.domain.codes import Actor, Outcome, Status
from listen_finalization.domain.commands import Admit
from listen_finalization.domain.content import Segment
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import Job
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.settings import Settings
from listen_finalization.stack.production import Production, Role
from listen_finalization.testing.processor import FakeProcessor

pytestmark = pytest.mark.xdist_group("firestore")


def inline(project: str) -> Settings:
    """A hand-over waits one second here, and rounds come every half: nobody else takes the jobs."""
    return Settings(
        firestore_project=project,
        firebase_project="people",
        reconcile_stale_seconds=1.0,
        reconcile_interval_seconds=0.5,
        lease_seconds=3.0,
    )


async def admitted(stack: Production, name: str, *, byok: bool = False) -> Job:
    said = Segment(f"{name}:1", "Ada", 0.0, 2.0, f"We ship {name} soon.")
    await stack.store.conversations.append("ada", name, [said], byok=byok)
    admission = Admission(stack.store.outbox, InlineDispatcher(), Signals())
    answer = await admission.admit(Admit("ada", name, Actor.LISTEN))
    assert isinstance(answer, Decision)
    assert answer.job is not None
    return answer.job


async def found(stack: Production, job: Job) -> Job:
    row = await stack.store.outbox.get(job.job_id)
    assert row is not None
    return row


async def test_due_jobs_are_run_by_the_live_role_and_left_by_the_api(
    firestore_host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_host)
    settings = inline(f"p-{secrets.token_hex(8)}")
    processor = FakeProcessor()
    async with await Production.open(settings, Role.API) as api:
        jobs = [await admitted(api, f"c{n}") for n in range(6)]
        keyed = await admitted(api, "keyed", byok=True)
        async with asyncio.timeout(20):
            while not api.signals.count(Event.ROUND_DONE):  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.05)
        assert {(await found(api, job)).status for job in jobs} == {Status.QUEUED}
        async with await Production.open(settings, Role.LIVE, processor=processor) as live:
            async with asyncio.timeout(30):
                while live.signals.count(Event.JOB_COMPLETED) < len(jobs):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        ended = [await found(api, job) for job in jobs]
        assert {(row.status, row.outcome) for row in ended} == {(Status.COMPLETED, Outcome.SUCCESS)}
        assert {row.history[-1].actor for row in ended} == {Actor.PUSHER}
        assert (await found(api, keyed)).status is Status.BLOCKED_BYOK
        assert processor.count("enrich") == len(jobs)
