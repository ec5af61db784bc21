"""`GET .../finalization`: what each standing of job and conversation is answered with."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from desk import Desk, desk, says

from listen_finalization.domain.codes import (
    Actor,
    EffectCode,
    EffectState,
    FailureCode,
    PurgeCause,
    ReleaseCause,
    Step,
)
from listen_finalization.domain.commands import (
    Admit,
    Checkpoint,
    ClaimJob,
    Complete,
    Fail,
    Purge,
    Release,
    Replay,
    StepResult,
)
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.identity import job_id
from listen_finalization.domain.job import Effect, Job
from listen_finalization.errors import RowUnreadableError
from listen_finalization.http.finalization import Finalization, Finalizations
from listen_finalization.http.problems import Kind

PATH = "/v1/conversations/c1/finalization"
JOB = job_id("ada", "c1", 1)


async def apply(made: Desk, command: Any) -> Job:
    answer = await made.outbox.apply(command)
    assert isinstance(answer, Decision) and answer.job is not None
    return answer.job


async def admitted(made: Desk, *, byok: bool = False) -> Job:
    await made.spoken(byok=byok)
    return await apply(made, Admit("ada", "c1"))


async def claimed(made: Desk, job: Job, *, retry: int | None = None) -> Job:
    claim_id = f"{job.lease_epoch + 1:032x}"
    return await apply(
        made, ClaimJob(job.job_id, job.dispatch_generation, claim_id, task_retry=retry)
    )


async def completed(made: Desk) -> Job:
    job = await claimed(made, await admitted(made))
    line = Effect(Step.ENRICH, EffectState.DONE, code=EffectCode.STORED)
    record = StepResult(Step.ENRICH, '{"title":"Plan"}')
    await apply(made, Checkpoint(job.claim, effects=(line,), results=(record,)))
    return await apply(made, Complete(job.claim))


async def buried(made: Desk) -> Job:
    job = await claimed(made, await admitted(made), retry=4)
    return await apply(made, Fail(job.claim, FailureCode.PROVIDER_ERROR, task_retry=4))


def alter(tmp_path: Path, assignments: str) -> None:
    """Write the conversation as another part of the application would."""
    with contextlib.closing(sqlite3.connect(tmp_path / "listen.db")) as connection:
        connection.execute(f"UPDATE conversations SET {assignments}")
        connection.commit()


async def test_a_queued_job_is_told_whole(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        job = await admitted(made)
        answer = await client.get(PATH)
        assert answer.status_code == 200
        told = answer.json()
        stamps = {told.pop(name) for name in ("created_at", "updated_at", "next_attempt_at")}
        assert told == {
            "job_id": JOB,
            "status": "queued",
            "terminal": False,
            "retryable": True,
            "attempt_count": 0,
            "max_attempts": 5,
            "dispatch_generation": 1,
            "last_task_retry": None,
            "failure_code": None,
            "outcome": None,
            "poll_after_seconds": 2,
            "steps": [
                {"step": "enrich", "state": "pending"},
                {"step": "memories", "state": "pending"},
                {"step": "fanout", "state": "pending"},
            ],
            "deliveries": {"pending": 0, "sent": 0, "done": 0, "dropped": 0},
        }
        assert all(stamp.endswith("Z") and len(stamp) == 27 for stamp in stamps)
        assert answer.headers["retry-after"] == "2"
        assert answer.headers["cache-control"] == "no-store"
        assert job.reconcile_after_at is not None


async def test_a_leased_job_shows_its_steps_and_no_destination(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        job = await claimed(made, await admitted(made), retry=3)
        lines = (
            Effect(Step.ENRICH, EffectState.DONE, code=EffectCode.STORED),
            Effect(Step.MEMORIES, EffectState.DONE, code=EffectCode.STORED),
            Effect(Step.FANOUT, EffectState.DONE, "secret-crm", EffectCode.HTTP_2XX),
            Effect(Step.FANOUT, EffectState.SENT, "secret-mail"),
        )
        await apply(made, Checkpoint(job.claim, effects=lines))
        answer = await client.get(PATH)
        told = answer.json()
        assert (told["status"], told["retryable"], told["next_attempt_at"]) == (
            "leased",
            False,
            None,
        )
        assert [step["state"] for step in told["steps"]] == ["done", "done", "sent"]
        assert told["deliveries"] == {"pending": 0, "sent": 1, "done": 1, "dropped": 0}
        assert (told["attempt_count"], told["last_task_retry"]) == (1, 3)
        assert "secret" not in answer.text
        assert job.claim_id is not None and job.claim_id not in answer.text


async def test_a_job_that_failed_once_is_retryable_and_polled_less(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        job = await claimed(made, await admitted(made))
        await apply(made, Fail(job.claim, FailureCode.PROVIDER_ERROR))
        told = (await client.get(PATH)).json()
        assert told["retryable"] is True
        assert told["failure_code"] == "provider_error"
        assert told["poll_after_seconds"] == 10


async def test_a_completed_job_is_terminal_and_not_polled(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await completed(made)
        answer = await client.get(PATH)
        told = answer.json()
        assert (told["status"], told["terminal"], told["outcome"]) == (
            "completed",
            True,
            "success",
        )
        assert [step["state"] for step in told["steps"]] == ["done", "skipped", "skipped"]
        assert told["poll_after_seconds"] is None
        assert "retry-after" not in answer.headers


async def test_deliveries_and_claims_can_be_told_apart(tmp_path: Path) -> None:
    """wrk-platform-503: four answers of the platform, one real attempt."""
    async with desk(tmp_path) as made, made.client() as client:
        await buried(made)
        told = (await client.get(PATH)).json()
        assert (told["status"], told["terminal"], told["outcome"]) == (
            "dead_letter",
            True,
            "failed",
        )
        assert (told["attempt_count"], told["last_task_retry"]) == (1, 4)


async def test_a_blocked_job_is_neither_terminal_nor_retryable(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await admitted(made, byok=True)
        told = (await client.get(PATH)).json()
        assert (told["status"], told["terminal"], told["retryable"]) == (
            "blocked_byok",
            False,
            False,
        )
        assert told["next_attempt_at"] is None


async def test_a_byok_job_with_keys_in_hand_has_no_next_attempt(tmp_path: Path) -> None:
    """It is parked when its time comes, not attempted."""
    async with desk(tmp_path) as made, made.client() as client:
        await made.spoken(byok=True)
        await apply(made, Admit("ada", "c1", Actor.LISTEN, holds_keys=True))
        told = (await client.get(PATH)).json()
        assert (told["status"], told["next_attempt_at"]) == ("queued", None)


async def test_no_job_yet_is_not_finalized_for_the_owner_alone(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await made.spoken()
        told = says(await client.get(PATH), 404, "not-finalized")
        assert told["code"] == "not_finalized"
        stranger = await client.get(PATH, headers=made.token("grace"))
        says(stranger, 404, "conversation-not-found")


@pytest.mark.parametrize(
    ("end", "status", "outcome"),
    [("complete", "completed", "success"), ("bury", "dead_letter", "failed")],
)
async def test_a_retired_job_is_answered_from_the_conversation(
    tmp_path: Path, end: str, status: str, outcome: str
) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await (completed(made) if end == "complete" else buried(made))
        await made.outbox.apply(Purge(JOB, PurgeCause.ACCOUNT))
        told = (await client.get(PATH)).json()
        assert (told["job_id"], told["status"], told["terminal"], told["outcome"]) == (
            JOB,
            status,
            True,
            outcome,
        )
        assert (told["attempt_count"], told["steps"], told["deliveries"]) == (None, [], None)
        again = await client.post("/v1/conversations/c1/finalize")
        assert again.status_code == 200
        assert (again.json()["job_id"], again.json()["status"]) == (JOB, status)


async def test_processing_without_a_job_is_unowned(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await admitted(made)
        await made.outbox.apply(Purge(JOB, PurgeCause.ACCOUNT))
        told = (await client.get(PATH)).json()
        assert (told["status"], told["terminal"], told["retryable"]) == (
            "unowned",
            False,
            False,
        )


@pytest.mark.parametrize(
    ("assignments", "status", "terminal"),
    [
        ("status = 'completed'", "completed", True),
        ("status = 'failed'", "dead_letter", True),
        ("discarded = 1", "completed", True),
    ],
)
async def test_a_conversation_that_another_lane_ended_has_the_word(
    tmp_path: Path, assignments: str, status: str, terminal: bool
) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await admitted(made)
        alter(tmp_path, assignments)
        told = (await client.get(PATH)).json()
        assert (told["status"], told["terminal"], told["retryable"]) == (status, terminal, False)
        answer = await client.post("/v1/conversations/c1/finalize")
        assert (answer.status_code, answer.json()["status"]) == (200, status)


async def test_a_dead_letter_that_another_lane_repaired_is_completed(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await buried(made)
        alter(tmp_path, "status = 'completed', discarded = 0")
        told = (await client.get(PATH)).json()
        assert (told["status"], told["outcome"]) == ("completed", "success")


@pytest.mark.parametrize("status", ["in_progress", "archived"])
async def test_a_conversation_taken_back_is_not_finalized(tmp_path: Path, status: str) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await admitted(made)
        alter(tmp_path, f"status = '{status}'")
        says(await client.get(PATH), 404, "not-finalized")


async def test_a_word_of_the_applications_own_does_not_hide_a_finished_job(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await completed(made)
        alter(tmp_path, "status = 'archived'")
        assert (await client.get(PATH)).json()["status"] == "completed"


async def test_a_row_of_a_newer_version_is_503(tmp_path: Path) -> None:
    async with desk(tmp_path) as made, made.client() as client:
        await admitted(made)
        with contextlib.closing(sqlite3.connect(tmp_path / "listen.db")) as connection:
            connection.execute("UPDATE conversation_finalization_jobs SET schema_version = 99")
            connection.commit()
        with pytest.raises(RowUnreadableError):
            await made.outbox.get(JOB)
        says(await client.get(PATH), 503, "store-unavailable")
        says(await client.post("/v1/conversations/c1/finalize"), 503, "store-unavailable")


async def test_job_and_conversation_never_contradict_each_other_while_they_change(
    tmp_path: Path,
) -> None:
    """Hammer the reader while the job runs through its whole life, again and again."""
    async with desk(tmp_path) as made:
        reader = Finalizations(made.outbox)
        job = await admitted(made)
        done = asyncio.Event()
        seen: list[Finalization] = []

        async def watch() -> None:
            while not done.is_set():
                found = await reader.read("ada", "c1")
                assert not isinstance(found, Kind)
                seen.append(found)

        watchers = [asyncio.ensure_future(watch()) for _ in range(6)]
        for _ in range(60):
            job = await claimed(made, job, retry=None)
            environment = Release(
                job.claim, ReleaseCause.ENVIRONMENT, FailureCode.ENVIRONMENT_PROVIDER
            )
            job = await claimed(made, await apply(made, environment))
            job = await apply(made, Fail(job.claim, FailureCode.PROVIDER_ERROR, task_retry=4))
            job = await apply(made, Replay(JOB, job.dispatch_generation, f"{job.lease_epoch:032x}"))
        done.set()
        await asyncio.gather(*watchers)

    assert {found.standing for found in seen} >= {"queued", "leased", "dead_letter"}
    for found in seen:
        over = found.conversation.status == "failed" and found.conversation.discarded
        assert found.terminal is over
        assert found.job is not None and found.job.terminal is over


async def test_where_the_two_disagree_for_good_the_conversation_has_the_word(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path) as made:
        await admitted(made)
        alter(tmp_path, "status = 'completed'")
        found = await Finalizations(made.outbox).read("ada", "c1")
        assert isinstance(found, Finalization) and found.terminal and found.job is None
