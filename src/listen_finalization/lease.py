"""The owner's side of a lease: one lane for all writes of a claim, renewed while it runs."""

from __future__ import annotations

import asyncio
import logging

from listen_finalization.domain.codes import Actor, Outcome, RefusalCode
from listen_finalization.domain.commands import Checkpoint, OwnedCommand, StepResult
from listen_finalization.domain.content import Memory
from listen_finalization.domain.decision import Answer, Decision
from listen_finalization.domain.job import SECOND, Claim, Effect, Job
from listen_finalization.errors import ListenFinalizationError, StoreError
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.ports import Outbox

SETTLE_TRIES = 4
"""How often a settling command is sent while the store is in trouble; repeats are harmless."""


class OwnershipLostError(ListenFinalizationError):
    """Another claim, an operator or a purge took the job: nothing more may be written."""


class ConversationLostError(ListenFinalizationError):
    """The conversation is gone or no longer ours; the job was fenced."""


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
        self._every = length / SECOND / 3
        self._lane = asyncio.Lock()
        self._renewal: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._run: asyncio.Task[object] | None = None

    @property
    def claim(self) -> Claim:
        return self._claim

    def keep(self, run: asyncio.Task[object]) -> None:
        """Renew every third of the lease until `stop`; a lost lease cancels `run`."""
        self._run = run
        self._arm()

    def _arm(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._every, self._start_renewal)

    def _start_renewal(self) -> None:
        self._renewal = asyncio.ensure_future(self._renew())

    async def _renew(self) -> None:
        try:
            await self.prove()
        except (OwnershipLostError, ConversationLostError):
            if self._run is not None:
                self._run.cancel()
            return
        except StoreError as fault:
            self._signals.emit(
                Event.RENEWAL_FAILED, job_id=self.job.job_id, fault=fault, level=logging.WARNING
            )
        self._arm()

    async def stop(self) -> None:
        """End the renewals; one that is under way is waited for."""
        if self._timer is not None:
            self._timer.cancel()
        if self._renewal is not None and not self._renewal.done():
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)

    async def prove(
        self,
        effects: tuple[Effect, ...] = (),
        results: tuple[StepResult, ...] = (),
        memories: tuple[Memory, ...] = (),
    ) -> Job:
        """Write a checkpoint and return the row; no effect may happen before this returns.

        Raises `OwnershipLostError`, `ConversationLostError` or `StoreError`.
        """
        command = Checkpoint(self._claim, self._actor, effects, results, memories)
        async with self._lane:
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
        """Send a settling command, again while the store is in trouble. Raises `StoreError`."""
        await self.stop()
        for attempt in range(SETTLE_TRIES):
            try:
                async with self._lane:
                    return await self._outbox.apply(command)
            except StoreError:
                if attempt == SETTLE_TRIES - 1:
                    raise
                await asyncio.sleep(0.05 * 4**attempt)
        raise AssertionError


def refused_ownership(answer: Answer) -> bool:
    """Whether a settling command was refused because somebody else owns the job now."""
    return not isinstance(answer, Decision) and answer.code is RefusalCode.OWNERSHIP_LOST
