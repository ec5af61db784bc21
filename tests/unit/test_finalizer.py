"""Claim, run, settle: every kind of trouble has its own end, and nobody writes for another."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from listen_finalization.domain.codes import (
    Actor,
    EffectCode,
    FailureCode,
    RedispatchCause,
    RefusalCode,
)
from listen_finalization.domain.commands import ClaimJob, Redispatch
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import Job, seconds
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import (
    EnvironmentFaultError,
    KeysRejectedError,
    StepFailedError,
)
from listen_finalization.finalizer import (
    SLOTS_DELAY,
    Delivery,
    ResultKind,
)
from listen_finalization.observe.signals import Event
from listen_finalization.testing.clock import FakeClock
from listen_finalization.testing.processor import (
    FakeProcessor,
    Held,
    fails,
    gives,
    in_turn,
    record,
)
from listen_finalization.testing.workshop import FakeLiveness, FakeSender, Workshop

CLOUD = Policy(lease=seconds(60))
ODD_CODE: Any = "canary"


async def test_a_job_is_claimed_run_and_completed_in_one_delivery(tmp_path: Path) -> None:
    async with Workshop(tmp_path) as workshop:
        job = await workshop.admitted()
        result = await workshop.run(job)
        ended = await workshop.job(job)
        assert (result.kind, result.code, result.job) == (ResultKind.COMPLETED, None, ended)
        assert (ended.outcome, ended.attempt_count, ended.lease_epoch) == ("success", 1, 1)
        told = await workshop.record()
        assert told.conversation.status == "completed"
        assert told.structured is not None and told.structured["title"] == "A conversation"
        assert [memory.text for memory in told.memories] == ["We ship on Friday."]
        assert workshop.signals.count(Event.JOB_COMPLETED) == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StepFailedError, FailureCode.PROVIDER_ERROR),
        (lambda: StepFailedError(FailureCode.PROVIDER_REFUSED), FailureCode.PROVIDER_REFUSED),
        (lambda: StepFailedError(ODD_CODE), FailureCode.PROCESSOR_ERROR),
        (RuntimeError, FailureCode.PROCESSOR_ERROR),
        (TimeoutError, FailureCode.PROCESSOR_ERROR),
        (StopIteration, FailureCode.PROCESSOR_ERROR),
        (SystemExit, FailureCode.PROCESSOR_ERROR),
        (KeyboardInterrupt, FailureCode.PROCESSOR_ERROR),
        (asyncio.CancelledError, FailureCode.PROCESSOR_ERROR),
        (lambda: BaseExceptionGroup("canary", [SystemExit()]), FailureCode.PROCESSOR_ERROR),
        (lambda: ExceptionGroup("canary", [ValueError()]), FailureCode.PROCESSOR_ERROR),
    ],
)
async def test_a_failed_step_costs_an_attempt_and_is_due_after_its_back_off(
    error: Any, code: FailureCode, tmp_path: Path
) -> None:
    clock = FakeClock()
    async with Workshop(tmp_path, FakeProcessor(enrich=fails(error)), clock=clock) as workshop:
        job = await workshop.admitted()
        async with asyncio.timeout(10):
            result = await workshop.run(job)
        left = await workshop.job(job)
        assert (result.kind, result.code) == (ResultKind.FAILED, code)
        assert (left.status, left.attempt_count, left.failure_code) == ("queued", 1, code)
        assert left.dispatch_generation == 1
        wait = (left.reconcile_after_at or 0) - clock()
        assert seconds(1) <= wait <= seconds(1.25)


async def test_the_final_attempt_dead_letters_job_and_conversation_together(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    processor = FakeProcessor(enrich=fails(StepFailedError))
    async with Workshop(tmp_path, processor, clock=clock) as workshop:
        job = await workshop.admitted()
        kinds = []
        for _ in range(6):
            kinds.append((await workshop.run(job)).kind)
            clock.advance(100)
        assert kinds == [ResultKind.FAILED] * 4 + [ResultKind.DEAD_LETTERED, ResultKind.IGNORED]
        told = await workshop.conversation()
        assert (told.status, told.discarded) == ("failed", True)
        assert processor.count() == 5
        assert workshop.signals.count(Event.JOB_DEAD_LETTERED, "provider_error") == 1


@pytest.mark.parametrize(
    ("wait", "delay"),
    [
        (None, 30),
        (90, 90),
        (0.01, 1),
        (0, 30),
        (-5, 30),
        (1e9, 3600),
        (float("nan"), 30),
        (float("inf"), 3600),
        ("soon", 30),
    ],
)
async def test_an_environment_fault_costs_nothing_and_schedules_a_new_hand_over(
    wait: Any, delay: float, tmp_path: Path
) -> None:
    clock = FakeClock()
    error = EnvironmentFaultError(retry_after=wait)
    processor = FakeProcessor(enrich=fails(lambda: error))
    async with Workshop(tmp_path, processor, policy=CLOUD, clock=clock) as workshop:
        job = await workshop.admitted()
        result = await workshop.run(job, task_retry=4)
        left = await workshop.job(job)
        assert result.kind is ResultKind.DEFERRED
        assert result.code is FailureCode.ENVIRONMENT_PROVIDER
        assert (left.status, left.attempt_count, left.releases) == ("queued", 0, 1)
        assert (left.dispatch_generation, left.last_task_retry) == (2, None)
        handed, handed_delay = workshop.dispatcher.handed[-1]
        assert (handed.dispatch_generation, handed_delay) == (2, seconds(delay))
        due = seconds(delay) + CLOUD.handover
        assert left.reconcile_after_at == clock() + due


async def test_an_outage_of_any_length_ends_after_twenty_releases(tmp_path: Path) -> None:
    processor = FakeProcessor(enrich=fails(EnvironmentFaultError))
    clock = FakeClock()
    async with Workshop(tmp_path, processor, clock=clock) as workshop:
        job = await workshop.admitted()
        kinds = []
        while not (await workshop.job(job)).terminal:
            kinds.append((await workshop.run(job)).kind)
            clock.advance(60)
        assert kinds[:19] == [ResultKind.DEFERRED] * 19
        assert kinds[19:] == [ResultKind.FAILED] * 4 + [ResultKind.DEAD_LETTERED]


async def test_a_refused_platform_key_is_an_environment_fault_and_no_hot_loop(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    processor = FakeProcessor(enrich=fails(KeysRejectedError))
    async with Workshop(tmp_path, processor, clock=clock) as workshop:
        job = await workshop.admitted()
        result = await workshop.run(job)
        assert result.kind is ResultKind.DEFERRED
        assert result.code is FailureCode.ENVIRONMENT_CREDENTIALS
        left = await workshop.job(job)
        assert (left.reconcile_after_at or 0) >= clock() + seconds(30)


@pytest.mark.parametrize(
    "code", [FailureCode.KEYS_REJECTED, FailureCode.KEYS_MISSING, "canary-code"]
)
async def test_rejected_keys_send_the_job_back_to_wait_for_others_uncounted(
    code: Any, tmp_path: Path
) -> None:
    processor = FakeProcessor(enrich=fails(lambda: KeysRejectedError(code)))
    async with Workshop(tmp_path, processor) as workshop:
        job = await workshop.admitted(byok=True, holds_keys=True)
        result = await workshop.run(job, keys={"openai": "canary-key"}, actor=Actor.PUSHER)
        left = await workshop.job(job)
        assert result.kind is ResultKind.BLOCKED
        assert left.failure_code == (
            code if isinstance(code, FailureCode) else FailureCode.KEYS_REJECTED
        )
        assert (left.status, left.attempt_count) == ("blocked_byok", 0)
        assert "canary" not in repr(result) + repr(left)


async def test_byok_work_never_runs_without_keys(tmp_path: Path) -> None:
    async with Workshop(tmp_path) as workshop:
        job = await workshop.admitted(byok=True, holds_keys=True)
        result = await workshop.run(job)
        assert (result.kind, result.code) == (ResultKind.IGNORED, RefusalCode.KEYS_REQUIRED)
        assert workshop.processor.count() == 0
        assert await workshop.job(job) == job


async def test_a_conversation_marked_byok_since_its_admission_waits_for_keys(
    tmp_path: Path,
) -> None:
    async with Workshop(tmp_path) as workshop:
        job = await workshop.admitted()
        await workshop.spoken(text="said with keys", byok=True)
        result = await workshop.run(job)
        assert result.kind is ResultKind.IGNORED
        assert result.code is RefusalCode.KEYS_REQUIRED
        assert workshop.processor.count() == 0


@pytest.mark.parametrize("order", ["stale", "future", "unknown", "terminal", "blocked"])
async def test_a_delivery_that_may_not_run_changes_nothing(order: str, tmp_path: Path) -> None:
    async with Workshop(tmp_path) as workshop:
        job = await workshop.admitted(byok=order == "blocked")
        if order == "terminal":
            await workshop.run(job)
        if order == "stale":
            await workshop.outbox.apply(Redispatch(job.job_id, 1, RedispatchCause.REQUEUE))
        before = await workshop.job(job)
        calls = workshop.processor.count()
        key = "00000000-0000-8000-8000-000000000000" if order == "unknown" else job.job_id
        result = await workshop.finalizer.run(Delivery(key, 7 if order == "future" else 1))
        expected = ResultKind.UNKNOWN if order == "unknown" else ResultKind.IGNORED
        assert result.kind is expected
        assert await workshop.job(job) == before
        assert workshop.processor.count() == calls


async def test_a_duplicate_of_a_running_job_is_busy_and_changes_nothing(tmp_path: Path) -> None:
    held = Held()
    async with Workshop(tmp_path, held.processor) as workshop:
        job = await workshop.admitted()
        running = asyncio.ensure_future(workshop.run(job))
        await held.begun()
        before = await workshop.job(job)
        for retry in range(5):
            result = await workshop.run(job, task_retry=retry)
            assert (result.kind, result.code) == (ResultKind.BUSY, RefusalCode.LEASE_HELD)
        assert await workshop.job(job) == before
        held.go.set()
        assert (await running).kind is ResultKind.COMPLETED
        assert held.processor.count() == 2


async def test_a_wrong_identity_is_told_like_an_unknown_job(tmp_path: Path) -> None:
    async with Workshop(tmp_path) as workshop:
        job = await workshop.admitted()
        result = await workshop.run(job, uid="eve", conversation_id="c1")
        assert (result.kind, result.code) == (ResultKind.UNKNOWN, RefusalCode.WRONG_IDENTITY)
        assert await workshop.job(job) == job


async def test_a_dead_process_job_is_taken_at_once_and_a_living_one_never(tmp_path: Path) -> None:
    async with Workshop(tmp_path, clock=FakeClock()) as workshop:
        other = FakeLiveness(buried=workshop.liveness.buried)
        job = await workshop.admitted()
        await workshop.outbox.apply(ClaimJob(job.job_id, 1, other.new_claim_id()))
        assert (await workshop.run(job)).kind is ResultKind.BUSY
        other.die()
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
        ended = await workshop.job(job)
        assert (ended.lease_epoch, ended.attempt_count) == (2, 2)


async def test_a_worker_that_dies_every_time_is_counted_and_ends_as_worker_lost(
    tmp_path: Path,
) -> None:
    async with Workshop(tmp_path, clock=FakeClock()) as workshop:
        job = await workshop.admitted()
        dead: str | None = None
        for _ in range(5):
            other = FakeLiveness(buried=workshop.liveness.buried)
            claim = other.new_claim_id()
            answer = await workshop.outbox.apply(ClaimJob(job.job_id, 1, claim, dead_claim=dead))
            assert isinstance(answer, Decision)
            other.die()
            dead = claim
        result = await workshop.run(job)
        assert (result.kind, result.code) == (ResultKind.DEAD_LETTERED, FailureCode.WORKER_LOST)
        assert (await workshop.conversation()).status == "failed"


async def test_the_run_as_a_whole_is_bounded_and_its_thread_keeps_the_slot(
    tmp_path: Path,
) -> None:
    held = Held()
    async with Workshop(tmp_path, held.processor, run_timeout=0.05) as workshop:
        job = await workshop.admitted()
        result = await workshop.run(job)
        assert (result.kind, result.code) == (ResultKind.FAILED, FailureCode.RUN_TIMEOUT)
        assert (workshop.slots.free, workshop.slots.outlived) == (3, 1)
        assert workshop.signals.count(Event.STEP_OUTLIVED) == 1
        held.go.set()
        await emptied(workshop)
        assert workshop.processor.count() == 1


async def emptied(workshop: Workshop) -> None:
    async with asyncio.timeout(5):
        while workshop.slots.free < 4:  # noqa: ASYNC110 - the slot is a thread's
            await asyncio.sleep(0.005)


async def test_after_its_ownership_is_lost_a_run_writes_nothing(tmp_path: Path) -> None:
    held = Held()
    async with Workshop(tmp_path, held.processor) as workshop:
        job = await workshop.admitted(subscribers=2)
        running = asyncio.ensure_future(workshop.run(job))
        await held.begun()
        thief = ClaimJob(job.job_id, 1, "b" * 32, dead_claim=(await workshop.job(job)).claim_id)
        await workshop.outbox.apply(thief)
        before = await workshop.job(job), await workshop.record()
        held.go.set()
        result = await running
        assert (result.kind, result.code) == (ResultKind.LOST, RefusalCode.OWNERSHIP_LOST)
        assert (await workshop.job(job), await workshop.record()) == before
        assert workshop.sender.sent == []
        assert held.processor.count("memories") == 0


async def test_a_deleted_conversation_fences_the_run_before_any_effect(tmp_path: Path) -> None:
    held = Held()
    async with Workshop(tmp_path, held.processor) as workshop:
        job = await workshop.admitted(subscribers=2)
        running = asyncio.ensure_future(workshop.run(job))
        await held.begun()
        await workshop.conversations.delete("ada", "c1")
        held.go.set()
        assert (await running).kind is ResultKind.FENCED
        assert (await workshop.job(job)).outcome == "fenced"
        assert workshop.sender.sent == []
        assert (await workshop.record()).structured is None


async def test_a_task_without_a_slot_is_scheduled_anew_and_costs_nothing(tmp_path: Path) -> None:
    held = Held()
    async with Workshop(tmp_path, held.processor, slots=1, policy=CLOUD) as workshop:
        first, second = await workshop.admitted("c1"), await workshop.admitted("c2")
        running = asyncio.ensure_future(workshop.run(first))
        await held.begun()
        assert (await workshop.run(first)).kind is ResultKind.BUSY
        result = await workshop.run(second, task_retry=3)
        left = await workshop.job(second)
        assert result.kind is ResultKind.DEFERRED
        assert left.failure_code is FailureCode.ENVIRONMENT_SLOTS
        assert (left.attempt_count, left.dispatch_generation) == (0, 2)
        handed, delay = workshop.dispatcher.handed[-1]
        assert (handed.dispatch_generation, delay) == (2, seconds(SLOTS_DELAY))
        again = await workshop.finalizer.run(Delivery(second.job_id, 1))
        assert again.kind is ResultKind.DEFERRED
        assert await workshop.job(second) == left
        held.go.set()
        assert (await running).kind is ResultKind.COMPLETED


async def test_a_pusher_without_a_slot_is_told_so_and_the_row_stands(tmp_path: Path) -> None:
    async with Workshop(tmp_path, slots=1) as workshop:
        job = await workshop.admitted()
        assert workshop.slots.take() is not None
        result = await workshop.run(job, actor=Actor.PUSHER, uid="eve", conversation_id="c1")
        assert (result.kind, result.code) == (
            ResultKind.UNAVAILABLE,
            FailureCode.ENVIRONMENT_SLOTS,
        )
        assert await workshop.job(job) == job


async def test_newer_content_of_a_running_job_opens_and_hands_over_its_successor(
    tmp_path: Path,
) -> None:
    held = Held()
    async with Workshop(tmp_path, held.processor) as workshop:
        job = await workshop.admitted()
        running = asyncio.ensure_future(workshop.run(job))
        await held.begun()
        await workshop.spoken(text="And one more thing.")
        await workshop.admitted()
        held.go.set()
        assert (await running).kind is ResultKind.COMPLETED
        named = await workshop.conversation()
        assert (named.status, named.revision) == ("processing", 2)
        handed: Job = workshop.dispatcher.handed[-1][0]
        assert handed.job_id == named.job_id


async def test_the_queues_last_retry_makes_a_failure_final(tmp_path: Path) -> None:
    processor = FakeProcessor(enrich=fails(StepFailedError))
    async with Workshop(tmp_path, processor, policy=CLOUD) as workshop:
        job = await workshop.admitted()
        assert (await workshop.run(job, task_retry=4)).kind is ResultKind.DEAD_LETTERED
        ended = await workshop.job(job)
        assert (ended.attempt_count, ended.last_task_retry) == (1, 4)


async def test_on_the_final_attempt_a_broken_destination_is_dropped_and_the_job_completes(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    sender = FakeSender({"d1": EffectCode.HTTP_5XX})
    async with Workshop(tmp_path, clock=clock, sender=sender) as workshop:
        job = await workshop.admitted(subscribers=2)
        kinds = []
        for _ in range(5):
            kinds.append((await workshop.run(job)).kind)
            clock.advance(100)
        assert kinds == [ResultKind.FAILED] * 4 + [ResultKind.COMPLETED]
        ended = await workshop.job(job)
        assert [(e.destination, e.state, e.tries) for e in ended.deliveries] == [
            ("d0", "done", 1),
            ("d1", "dropped", 5),
        ]
        assert (sender.count("d0"), sender.count("d1")) == (1, 5)
        assert workshop.processor.count() == 2
        assert (await workshop.conversation()).status == "completed"


@pytest.mark.parametrize("odd", [object(), "text", 5, [], {"title": "x"}])
async def test_an_odd_result_is_a_failure_with_its_own_code(odd: object, tmp_path: Path) -> None:
    processor = FakeProcessor(enrich=in_turn(gives(odd), record))
    clock = FakeClock()
    async with Workshop(tmp_path, processor, clock=clock) as workshop:
        job = await workshop.admitted()
        result = await workshop.run(job)
        assert result.code is FailureCode.PROCESSOR_INVALID_RESULT
        clock.advance(10)
        assert (await workshop.run(job)).kind is ResultKind.COMPLETED
