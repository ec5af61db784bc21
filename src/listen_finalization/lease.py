"""The owner's side of a lease: one lane for all writes of a claim, renewed while it runs."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from listen_finalization.domain.budgets import RENEWALS_PER_LEASE
from listen_finalization.domain.codes import Actor, Outcome, RefusalCode
from listen_finalization.domain.commands import (
    Checkpoint,
    ClaimJob,
    Command,
    OwnedCommand,
    StepResult,
)
from listen_finalization.domain.content import Memory
from listen_finalization.domain.decision import Answer, Decision, Refused
from listen_finalization.domain.job import SECOND, Claim, Effect, Job
from listen_finalization.errors import (
    ListenFinalizationError,
    StoreBrokenError,
    StoreError,
    ValueRefusedError,
)
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.ports import Liveness, Outbox

PATIENCE = 1.1
"""Seconds of waiting for a store in trouble, where waiting longer has no use of its own."""

_FIRST_WAIT, _LONGEST_WAIT = 0.05, 1.0

RENEWAL_HASTE = 5
"""By how much sooner than usual a renewal follows one that the store did not take."""

_HOPELESS = (ValueRefusedError, StoreBrokenError)


class OwnershipLostError(ListenFinalizationError):
    """Another claim, an operator or a purge took the job: nothing more may be written."""


class ConversationLostError(ListenFinalizationError):
    """The conversation is gone or no longer ours; the job was fenced."""


async def apply_again(outbox: Outbox, command: Command, *, patience: float = PATIENCE) -> Answer:
    """Apply a command, again while the store is in trouble, for `patience` seconds of waiting.

    A commit whose answer was lost is recognised by the repeat. Raises `StoreError`.
    """
    waited, wait = 0.0, _FIRST_WAIT
    while True:
        try:
            return await outbox.apply(command)
        except _HOPELESS:
            raise
        except StoreError:
            if waited + wait > patience:
                raise
        await asyncio.sleep(wait)
        waited, wait = waited + wait, min(4 * wait, _LONGEST_WAIT)


async def take_lease(outbox: Outbox, liveness: Liveness, command: ClaimJob) -> Answer:
    """Claim; the lease of a process that is provably dead is taken at once. Raises `StoreError`."""
    answer = await apply_again(outbox, command)
    holder = _holder(answer)
    if holder is None or not liveness.dead(holder):
        return answer
    return await apply_again(outbox, replace(command, dead_claim=holder))


def _holder(answer: Answer) -> str | None:
    """Return the claim id that holds the lease which refused a claim."""
    if isinstance(answer, Refused) and answer.code is RefusalCode.LEASE_HELD and answer.job:
        return answer.job.claim_id
    return None


class Lease:
    """Proof of ownership that a run carries; every write of the run goes through it, in order."""

    def __init__(
        self, outbox: Outbox, job: Job, actor: Actor, signals: Signals, *, length: int
    ) -> None:
        """Hold the lease of a leased `job`; `length` is that of the policy, in microseconds."""
        self.job = job
        self.lost = False
        self._claim = job.claim
        self._outbox = outbox
        self._actor = actor
        self._signals = signals
        self._patience = max(length / SECOND, PATIENCE)
        self._every = length / SECOND / RENEWALS_PER_LEASE
        self._lane = asyncio.Lock()
        self._renewal: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._run: asyncio.Task[object] | None = None
        self._stopped = False

    @property
    def claim(self) -> Claim:
        return self._claim

    def keep(self, run: asyncio.Task[object]) -> None:
        """Renew every third of the lease until `stop`; a lost lease cancels `run`."""
        self._run = run
        self._arm(self._every)

    def _arm(self, wait: float) -> None:
        if not self._stopped:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(wait, self._start_renewal)

    def _start_renewal(self) -> None:
        self._renewal = asyncio.ensure_future(self._renew())

    async def _renew(self) -> None:
        try:
            await self.prove()
        except (OwnershipLostError, ConversationLostError):
            if self._run is not None:
                self._run.cancel()
        except StoreError as fault:
            self._signals.emit(
                Event.RENEWAL_FAILED, job_id=self.job.job_id, fault=fault, level=logging.WARNING
            )
            self._arm(self._every / RENEWAL_HASTE)
        else:
            self._arm(self._every)

    async def stop(self) -> None:
        """End the renewals; one that is under way is waited for. May be called again."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._renewal is not None:
            await asyncio.gather(self._renewal, return_exceptions=True)

    async def prove(
        self,
        effects: tuple[Effect, ...] = (),
        results: tuple[StepResult, ...] = (),
        memories: tuple[Memory, ...] = (),
    ) -> Job:
        """Write a checkpoint and return the row; no effect may happen before this returns.

        One that stores something is sent again for a whole lease while the store is in trouble:
        what it holds was paid for. An empty one, a renewal, is left to the next.

        Raises `OwnershipLostError`, `ConversationLostError` or `StoreError`.
        """
        command = Checkpoint(self._claim, self._actor, effects, results, memories)
        async with self._lane:
            if effects or results or memories:
                answer = await apply_again(self._outbox, command, patience=self._patience)
            else:
                answer = await self._outbox.apply(command)
        return self._owned(answer)

    def _owned(self, answer: Answer) -> Job:
        if not isinstance(answer, Decision) or answer.job is None:
            self.lost = True
            self._signals.emit(Event.OWNERSHIP_LOST, job_id=self.job.job_id, level=logging.WARNING)
            raise OwnershipLostError
        if answer.job.outcome is Outcome.FENCED:
            self.lost = True
            self._signals.emit(Event.JOB_FENCED, job_id=self.job.job_id)
            raise ConversationLostError
        self.job = answer.job
        return answer.job

    async def settle(self, command: OwnedCommand) -> Answer:
        """Send a settling command, again for a whole lease while the store is in trouble.

        An expired lease still owns, so that a store which is away costs no attempt. Raises
        `StoreError`.
        """
        await self.stop()
        async with self._lane:
            return await apply_again(self._outbox, command, patience=self._patience)


def refused_ownership(answer: Answer) -> bool:
    """Whether a settling command was refused because somebody else owns the job now."""
    return not isinstance(answer, Decision) and answer.code is RefusalCode.OWNERSHIP_LOST
