"""Running a delivered job: claim, run under the lease, settle. Every entrance uses this one."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from listen_finalization.admission import hand_over, waits_for_worker
from listen_finalization.domain.codes import (
    Actor,
    FailureCode,
    Outcome,
    RefusalCode,
    ReleaseCause,
    Status,
    Verb,
)
from listen_finalization.domain.commands import ClaimJob, Complete, Fail, OwnedCommand, Release
from listen_finalization.domain.decision import Answer, Decision, Refused
from listen_finalization.domain.job import Job, seconds
from listen_finalization.errors import (
    EnvironmentFaultError,
    KeysRejectedError,
    StepFailedError,
    StoreError,
)
from listen_finalization.lease import (
    ConversationLostError,
    Lease,
    OwnershipLostError,
    refused_ownership,
)
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.ports import Dispatcher, Liveness, Outbox
from listen_finalization.processing.pipeline import End, Pipeline, Run, Unfinished
from listen_finalization.processing.slots import Slot, Slots

ENVIRONMENT_DELAY = 30.0
"""Seconds until the next hand-over after an environment fault that names no time of its own."""

MAX_ENVIRONMENT_DELAY = 3_600.0


class ResultKind(StrEnum):
    """What became of a delivery; the routes map each kind to one answer."""

    COMPLETED = "completed"
    FENCED = "fenced"
    DEAD_LETTERED = "dead_lettered"
    IGNORED = "ignored"
    UNKNOWN = "unknown"
    BUSY = "busy"
    FAILED = "failed"
    DEFERRED = "deferred"
    BLOCKED = "blocked"
    LOST = "lost"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Result:
    """The kind, and the bounded code that says why."""

    kind: ResultKind
    code: RefusalCode | FailureCode | None = None
    job: Job | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request to run a job. `keys` are the user's own, present only on the live path."""

    job_id: str
    generation: int
    actor: Actor = Actor.WORKER
    task_retry: int | None = None
    uid: str | None = None
    conversation_id: str | None = None
    keys: Mapping[str, str] | None = field(default=None, repr=False)


class Finalizer:
    """Runs deliveries, at most as many at once as there are slots."""

    def __init__(
        self,
        outbox: Outbox,
        pipeline: Pipeline,
        dispatcher: Dispatcher,
        liveness: Liveness,
        slots: Slots,
        signals: Signals,
        *,
        lease: int,
        run_timeout: float,
    ) -> None:
        """`lease` is the policy's, in microseconds; `run_timeout` bounds a run, in seconds."""
        self._outbox = outbox
        self._pipeline = pipeline
        self._dispatcher = dispatcher
        self._liveness = liveness
        self._slots = slots
        self._signals = signals
        self._lease = lease
        self._run_timeout = run_timeout
        self._running: set[asyncio.Task[Result]] = set()
        self._closing = False

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def slots(self) -> Slots:
        return self._slots

    async def run(self, delivery: Delivery) -> Result:
        """Run the delivery to its end and say what came of it; raises only `CancelledError`.

        The run is the process's own: a caller that goes away does not end it.
        """
        if self._closing:
            return Result(ResultKind.UNAVAILABLE, FailureCode.SHUTDOWN)
        task = asyncio.ensure_future(self._guarded(delivery))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def close(self, grace: float) -> None:
        """Refuse new deliveries, wait `grace` seconds for the runs, then release what is left."""
        self._closing = True
        if self._running:
            await asyncio.wait(self._running, timeout=grace)
        left = list(self._running)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self._slots.close()

    async def _guarded(self, delivery: Delivery) -> Result:
        try:
            return await self._in_slot(delivery)
        except StoreError as fault:
            self._signals.emit(
                Event.STORE_FAULT, job_id=delivery.job_id, fault=fault, level=logging.ERROR
            )
            return Result(ResultKind.UNAVAILABLE, FailureCode.ENVIRONMENT_STORE)

    async def _in_slot(self, delivery: Delivery) -> Result:
        slot = self._slots.take()
        if slot is None:
            return await self._without_slot(delivery)
        try:
            return await self._claimed(delivery, slot)
        finally:
            slot.give_back()
            if slot.outlived:
                self._signals.emit(
                    Event.STEP_OUTLIVED, job_id=delivery.job_id, level=logging.WARNING
                )

    async def _without_slot(self, delivery: Delivery) -> Result:
        """Answer a delivery that cannot run now: busy when it would have been refused anyway."""
        job = await self._outbox.get(delivery.job_id)
        if job is not None and job.status is Status.LEASED:
            return Result(ResultKind.BUSY, RefusalCode.LEASE_HELD, job)
        return Result(ResultKind.UNAVAILABLE, FailureCode.ENVIRONMENT_SLOTS)

    async def _claimed(self, delivery: Delivery, slot: Slot) -> Result:
        answer = await self._claim(delivery)
        if isinstance(answer, Refused):
            self._signals.emit(Event.CLAIM_REFUSED, code=answer.code, job_id=delivery.job_id)
            return _refused(answer)
        job = answer.job
        if job is None or job.status is not Status.LEASED:
            return await self._ended(answer)
        self._signals.emit(Event.JOB_CLAIMED, job_id=job.job_id)
        return await self._under_lease(delivery, job, slot)

    async def _claim(self, delivery: Delivery) -> Answer:
        command = ClaimJob(
            delivery.job_id,
            delivery.generation,
            self._liveness.new_claim_id(),
            delivery.actor,
            holds_keys=bool(delivery.keys),
            uid=delivery.uid,
            conversation_id=delivery.conversation_id,
            task_retry=delivery.task_retry,
        )
        answer = await self._outbox.apply(command)
        holder = _holder(answer)
        if holder is None or not self._liveness.dead(holder):
            return answer
        return await self._outbox.apply(replace(command, dead_claim=holder))

    async def _under_lease(self, delivery: Delivery, job: Job, slot: Slot) -> Result:
        lease = Lease(self._outbox, job, delivery.actor, self._signals, length=self._lease)
        try:
            settling = await self._settling(delivery, lease, slot)
        except (OwnershipLostError, ConversationLostError) as lost:
            return _lost(lost)
        finally:
            await lease.stop()
        answer = await lease.settle(settling)
        return await self._ended(answer)

    async def _settling(self, delivery: Delivery, lease: Lease, slot: Slot) -> OwnedCommand:
        """Run the steps and return the command that settles what came of them."""
        run = Run(lease, slot, time.monotonic() + self._run_timeout, delivery.keys)
        task: asyncio.Task[End] = asyncio.ensure_future(self._pipeline.run(run))
        lease.keep(task)
        try:
            async with asyncio.timeout(self._run_timeout):
                return self._settled_by(delivery, lease, await asyncio.shield(task))
        except Exception as fault:  # noqa: BLE001 - a user's processor may raise anything
            await _ended_task(task)
            return self._faulted(delivery, lease, fault)
        except asyncio.CancelledError:
            await _ended_task(task)
            if lease.lost:
                raise OwnershipLostError from None
            return Release(lease.claim, ReleaseCause.SHUTDOWN, FailureCode.SHUTDOWN, delivery.actor)

    def _settled_by(self, delivery: Delivery, lease: Lease, end: End) -> OwnedCommand:
        if isinstance(end, Unfinished):
            return self._failure(delivery, lease, end.code)
        held = bool(delivery.keys)
        return Complete(lease.claim, delivery.actor, discard=end.discard, holds_keys=held)

    def _failure(self, delivery: Delivery, lease: Lease, code: FailureCode) -> Fail:
        jitter = random.randrange(1_000)  # noqa: S311
        return Fail(lease.claim, code, delivery.actor, delivery.task_retry, jitter)

    def _faulted(self, delivery: Delivery, lease: Lease, fault: Exception) -> OwnedCommand:
        """Map what a run raised to failed, environment or keys rejected: one table."""
        if isinstance(fault, OwnershipLostError | ConversationLostError):
            raise fault
        self._signals.emit(
            Event.STEP_FAULT, job_id=delivery.job_id, fault=fault, level=logging.WARNING
        )
        match fault:
            case StepFailedError(code=code):
                return self._failure(delivery, lease, code)
            case EnvironmentFaultError(code=code, retry_after=wait):
                return self._environment(delivery, lease, code, wait)
            case StoreError():
                return self._environment(delivery, lease, FailureCode.ENVIRONMENT_STORE, None)
            case KeysRejectedError(code=code):
                return Release(lease.claim, ReleaseCause.KEYS_REJECTED, code, delivery.actor)
            case TimeoutError():
                return self._failure(delivery, lease, FailureCode.RUN_TIMEOUT)
            case _:
                return self._failure(delivery, lease, FailureCode.PROCESSOR_ERROR)

    def _environment(
        self, delivery: Delivery, lease: Lease, code: FailureCode, wait: float | None
    ) -> Release:
        delay = min(max(wait or ENVIRONMENT_DELAY, 1.0), MAX_ENVIRONMENT_DELAY)
        return Release(
            lease.claim,
            ReleaseCause.ENVIRONMENT,
            code,
            delivery.actor,
            delay=seconds(delay),
            jitter=random.randrange(1_000),  # noqa: S311
            task_retry=delivery.task_retry,
        )

    async def _ended(self, answer: Answer) -> Result:
        """Tell what a settling decision came to, and hand over what it opened."""
        if isinstance(answer, Refused):
            if refused_ownership(answer):
                self._signals.emit(Event.OWNERSHIP_LOST, level=logging.WARNING)
            return Result(ResultKind.LOST, answer.code, answer.job)
        if answer.job is None:
            return Result(ResultKind.LOST)
        await self._hand_on(answer)
        kind, event = _kind(answer)
        self._signals.emit(event, code=answer.job.failure_code, job_id=answer.job.job_id)
        return Result(kind, answer.job.failure_code, answer.job)

    async def _hand_on(self, answer: Decision) -> None:
        if answer.successor is not None and waits_for_worker(answer.successor):
            await hand_over(self._dispatcher, self._signals, answer.successor)
        job = answer.job
        if answer.did is Verb.RELEASE and job is not None and waits_for_worker(job):
            delay = max((job.reconcile_after_at or 0) - job.updated_at, 0)
            if job.handovers:
                await hand_over(self._dispatcher, self._signals, job, delay=delay)


async def _ended_task(task: asyncio.Task[End]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _holder(answer: Answer) -> str | None:
    """Return the claim id that holds the lease which refused a claim."""
    if isinstance(answer, Refused) and answer.code is RefusalCode.LEASE_HELD and answer.job:
        return answer.job.claim_id
    return None


def _lost(lost: Exception) -> Result:
    if isinstance(lost, ConversationLostError):
        return Result(ResultKind.FENCED)
    return Result(ResultKind.LOST, RefusalCode.OWNERSHIP_LOST)


_REFUSALS = {
    RefusalCode.JOB_UNKNOWN: ResultKind.UNKNOWN,
    RefusalCode.WRONG_IDENTITY: ResultKind.UNKNOWN,
    RefusalCode.LEASE_HELD: ResultKind.BUSY,
    RefusalCode.CLAIM_LOST: ResultKind.LOST,
    RefusalCode.SCHEMA_NEWER: ResultKind.UNAVAILABLE,
}


def _refused(answer: Refused) -> Result:
    kind = _REFUSALS.get(answer.code, ResultKind.IGNORED)
    return Result(kind, answer.code, answer.job)


def _kind(answer: Decision) -> tuple[ResultKind, Event]:
    job = answer.job
    if job is None:
        return ResultKind.LOST, Event.OWNERSHIP_LOST
    if job.outcome is Outcome.FENCED:
        return ResultKind.FENCED, Event.JOB_FENCED
    if job.status is Status.COMPLETED:
        return ResultKind.COMPLETED, Event.JOB_COMPLETED
    if job.status is Status.DEAD_LETTER:
        return ResultKind.DEAD_LETTERED, Event.JOB_DEAD_LETTERED
    if answer.did is Verb.FAIL:
        return ResultKind.FAILED, Event.JOB_FAILED
    if job.status is Status.BLOCKED_BYOK:
        return ResultKind.BLOCKED, Event.JOB_RELEASED
    return ResultKind.DEFERRED, Event.JOB_RELEASED
