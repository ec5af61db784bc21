"""Running a delivered job: claim, run under the lease, settle. Every entrance uses this one."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import assert_never

from listen_finalization.admission import hand_over, waits_for_worker
from listen_finalization.domain.codes import (
    Actor,
    FailureCode,
    Outcome,
    RedispatchCause,
    RefusalCode,
    ReleaseCause,
    Status,
    Verb,
)
from listen_finalization.domain.commands import (
    ClaimJob,
    Complete,
    Fail,
    OwnedCommand,
    Redispatch,
    Release,
)
from listen_finalization.domain.decision import Answer, Decision, Refused
from listen_finalization.domain.job import Job, seconds
from listen_finalization.errors import StoreError
from listen_finalization.lease import (
    ConversationLostError,
    Lease,
    OwnershipLostError,
    apply_again,
    refused_ownership,
    take_lease,
)
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.ports import Dispatcher, Liveness, Outbox, RunLock
from listen_finalization.processing.pipeline import End, Pipeline, Run, Unfinished
from listen_finalization.processing.slots import Slot, Slots
from listen_finalization.processing.trouble import RunTimeoutError, Trouble, trouble

SLOTS_DELAY = 10.0
"""Seconds until the next hand-over of a delivery that found every slot held."""

RELEASE_LIMIT = 5.0
"""Seconds that a shutdown waits, after its grace, for the releases of what it had to stop."""


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
        run_lock: RunLock | None = None,
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
        self._run_lock = run_lock
        self._running: set[asyncio.Task[Result]] = set()
        self._steps: set[asyncio.Task[End]] = set()
        self._closing = False
        self._releasing = False

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
        """Refuse new deliveries, wait `grace` seconds for the runs, then release what is left.

        Only steps are cancelled: a claim, a settlement and a release go to their end, within
        `RELEASE_LIMIT`.
        """
        self._closing = True
        await self._landed(grace)
        self._releasing = True
        for task in tuple(self._steps):
            task.cancel()
        await self._landed(RELEASE_LIMIT)
        left = tuple(self._running)
        for run in left:
            run.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self._slots.close()

    async def _landed(self, limit: float) -> None:
        if self._running:
            await asyncio.wait(self._running, timeout=limit)

    async def _guarded(self, delivery: Delivery) -> Result:
        try:
            return await self._in_slot(delivery)
        except StoreError as fault:
            return self._unavailable(delivery, fault, FailureCode.ENVIRONMENT_STORE)
        except Exception as fault:  # noqa: BLE001 - the caller may be gone: nobody would hear of it
            return self._unavailable(delivery, fault, FailureCode.ENVIRONMENT_CONFIGURATION)

    def _unavailable(self, delivery: Delivery, fault: Exception, code: FailureCode) -> Result:
        stored = code is FailureCode.ENVIRONMENT_STORE
        event = Event.STORE_FAULT if stored else Event.STEP_FAULT
        self._signals.emit(event, job_id=delivery.job_id, fault=fault, level=logging.ERROR)
        return Result(ResultKind.UNAVAILABLE, code)

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
        """Answer a task that cannot run now with the next hand-over: nothing failed (contract 5.3).

        Others hold what they deliver themselves and are told to come again.
        """
        full = Result(ResultKind.UNAVAILABLE, FailureCode.ENVIRONMENT_SLOTS)
        if delivery.actor is not Actor.WORKER:
            return full
        delay = seconds(SLOTS_DELAY)
        command = Redispatch(
            delivery.job_id,
            delivery.generation,
            RedispatchCause.ENVIRONMENT,
            delivery.actor,
            FailureCode.ENVIRONMENT_SLOTS,
            delay,
        )
        answer = await apply_again(self._outbox, command)
        if isinstance(answer, Refused) and answer.code is not RefusalCode.KEYS_REQUIRED:
            return _refused(answer)
        return full if isinstance(answer, Refused) else await self._ended(answer, delay)

    async def _claimed(self, delivery: Delivery, slot: Slot) -> Result:
        claim = self._claim(delivery)
        if self._run_lock is None:
            return await self._run(claim, delivery, slot)
        async with self._run_lock.held(claim) as refused:
            return await self._run(claim, delivery, slot, refused=refused)

    async def _run(
        self, claim: ClaimJob, delivery: Delivery, slot: Slot, *, refused: Refused | None = None
    ) -> Result:
        answer = refused or await take_lease(self._outbox, self._liveness, claim)
        if isinstance(answer, Refused):
            self._signals.emit(Event.CLAIM_REFUSED, code=answer.code, job_id=delivery.job_id)
            return _refused(answer)
        job = answer.job
        if job is None or job.status is not Status.LEASED:
            return await self._ended(answer)
        self._signals.emit(Event.JOB_CLAIMED, job_id=job.job_id)
        return await self._under_lease(delivery, job, slot)

    def _claim(self, delivery: Delivery) -> ClaimJob:
        return ClaimJob(
            delivery.job_id,
            delivery.generation,
            self._liveness.new_claim_id(),
            delivery.actor,
            holds_keys=bool(delivery.keys),
            uid=delivery.uid,
            conversation_id=delivery.conversation_id,
            task_retry=delivery.task_retry,
        )

    async def _under_lease(self, delivery: Delivery, job: Job, slot: Slot) -> Result:
        lease = Lease(self._outbox, job, delivery.actor, self._signals, length=self._lease)
        try:
            settling = await self._settling(delivery, lease, slot)
        except (OwnershipLostError, ConversationLostError) as lost:
            return _lost(lost)
        finally:
            await lease.stop()
        answer = await lease.settle(settling)
        delay = settling.delay if isinstance(settling, Release) else 0
        return await self._ended(answer, delay)

    async def _settling(self, delivery: Delivery, lease: Lease, slot: Slot) -> OwnedCommand:
        """Run the steps and return the command that settles what came of them."""
        shutdown = Release(lease.claim, ReleaseCause.SHUTDOWN, FailureCode.SHUTDOWN, delivery.actor)
        if self._releasing:
            return shutdown
        run = Run(lease, slot, time.monotonic() + self._run_timeout, delivery.keys)
        task = self._begun(run)
        limit = asyncio.timeout(self._run_timeout)
        try:
            async with limit:
                return self._settled_by(delivery, lease, await asyncio.shield(task))
        except Exception as fault:  # noqa: BLE001 - a user's processor may raise anything
            await _ended_task(task)
            late = limit.expired() and isinstance(fault, TimeoutError)
            return self._faulted(delivery, lease, RunTimeoutError() if late else fault)
        except asyncio.CancelledError:
            await _ended_task(task)
            if lease.lost:
                raise OwnershipLostError from None
            return shutdown

    def _begun(self, run: Run) -> asyncio.Task[End]:
        task = asyncio.ensure_future(self._pipeline.run(run))
        self._steps.add(task)
        task.add_done_callback(self._steps.discard)
        run.lease.keep(task)
        return task

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
        kind, code, delay = trouble(fault, holds_keys=bool(delivery.keys))
        match kind:
            case Trouble.FAILED:
                return self._failure(delivery, lease, code)
            case Trouble.KEYS:
                return Release(lease.claim, ReleaseCause.KEYS_REJECTED, code, delivery.actor)
            case Trouble.ENVIRONMENT:
                return self._environment(delivery, lease, code, delay)
            case _:
                assert_never(kind)

    def _environment(
        self, delivery: Delivery, lease: Lease, code: FailureCode, delay: float
    ) -> Release:
        return Release(
            lease.claim,
            ReleaseCause.ENVIRONMENT,
            code,
            delivery.actor,
            delay=seconds(delay),
            jitter=random.randrange(1_000),  # noqa: S311
            task_retry=delivery.task_retry,
        )

    async def _ended(self, answer: Answer, delay: int = 0) -> Result:
        """Tell what a decision came to, and hand over what it opened, `delay` from now."""
        if isinstance(answer, Refused):
            if refused_ownership(answer):
                self._signals.emit(Event.OWNERSHIP_LOST, level=logging.WARNING)
            return Result(ResultKind.LOST, answer.code, answer.job)
        if answer.job is None:
            return Result(ResultKind.LOST)
        await self._hand_on(answer, answer.job, delay)
        kind, event = _kind(answer)
        self._signals.emit(event, code=answer.job.failure_code, job_id=answer.job.job_id)
        return Result(kind, answer.job.failure_code, answer.job)

    async def _hand_on(self, answer: Decision, job: Job, delay: int) -> None:
        if answer.successor is not None and waits_for_worker(answer.successor):
            await hand_over(self._dispatcher, self._signals, answer.successor)
        if answer.did in _MINTING and waits_for_worker(job) and job.handovers:
            await hand_over(self._dispatcher, self._signals, job, delay=delay)


_MINTING = frozenset({Verb.RELEASE, Verb.REDISPATCH})


async def _ended_task(task: asyncio.Task[End]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


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
    # Only a recorded hand-over may be acknowledged: a queue forgets what it was told is done.
    handed = ResultKind.DEFERRED if job.handovers else ResultKind.UNAVAILABLE
    return handed, Event.JOB_RELEASED
