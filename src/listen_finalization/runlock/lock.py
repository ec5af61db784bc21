"""The run lock as the finalizer sees it: who is turned away, and whose lock is taken over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Protocol

from listen_finalization.domain.codes import RefusalCode
from listen_finalization.domain.commands import ClaimJob
from listen_finalization.domain.decision import Answer, Probe, Refused
from listen_finalization.domain.machine import decide
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import StoreError
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.ports import Liveness, Outbox


class Locks(Protocol):
    """Where the locks are kept. Nothing is raised: a place in trouble answers None or False."""

    async def take(self, job_id: str, claim_id: str) -> bytes | None:
        """Take a free lock; return the value of another that holds it, or None."""
        ...

    async def replace(self, job_id: str, claim_id: str, *, seen: bytes) -> bool:
        """Take the lock over if it still has the value that was seen."""
        ...

    async def drop(self, job_id: str, claim_id: str) -> bool:
        """Delete the lock if its value is the claim id."""
        ...

    async def close(self) -> None: ...


class LeaseRunLock:
    """A lock that refuses only while the lease which it stands for lives in the outbox.

    | the lock | the claim, decided on the row as it is read now | what happens |
    |---|---|---|
    | free | not asked | taken, then the claim |
    | ours already: the answer to an earlier try was lost | not asked | the claim |
    | held | the lease is held: live by the store's clock, its process not dead | refused, so |
    | held | passes: never claimed, failed, released, lease over, process dead | taken over, claim |
    | held | refused otherwise: generation, end, keys, identity | left alone; the claim says so |
    | held | the row cannot be read | left alone; the claim asks the same store, with patience |
    | taken over by B while C tries the same | passes | left to B; both claim, the lease takes one |
    | its server does not answer | not asked | the claim, counted |
    | emptied or expired during a run | not asked | the next delivery's; its claim is refused |

    In every line but the third the claim follows, and it alone decides who runs. A lock is given
    back at the end, by its own value; whoever lost it in between deletes nobody else's.
    """

    def __init__(self, locks: Locks, outbox: Outbox, liveness: Liveness, signals: Signals) -> None:
        self._locks = locks
        self._outbox = outbox
        self._liveness = liveness
        self._signals = signals

    @asynccontextmanager
    async def held(self, claim: ClaimJob) -> AsyncIterator[Refused | None]:
        """Enter with the refusal, or with None; see the table of the class."""
        refused = None
        try:
            refused = await self._enter(claim)
            yield refused
        finally:
            # Also where the taking was not answered: it may have been carried out.
            if refused is None:
                await self._locks.drop(claim.job_id, claim.claim_id)

    async def close(self) -> None:
        """Let go of the server. No run may hold a lock any more."""
        await self._locks.close()

    async def _enter(self, claim: ClaimJob) -> Refused | None:
        holder = await self._locks.take(claim.job_id, claim.claim_id)
        if holder is None:
            return None
        try:
            foreseen = await self._foreseen(claim)
        except StoreError:
            return None
        if isinstance(foreseen, Refused):
            return foreseen if foreseen.code is RefusalCode.LEASE_HELD else None
        if await self._locks.replace(claim.job_id, claim.claim_id, seen=holder):
            self._signals.emit(Event.RUN_LOCK_TAKEN_OVER, job_id=claim.job_id)
        return None

    async def _foreseen(self, claim: ClaimJob) -> Answer | Probe:
        """Decide the claim on the row as it is now, without its conversation; write nothing.

        All refusals come before a conversation or a budget counts. Time is the store's: a worker
        with a wrong clock takes no live lease for an expired one.
        """
        job = await self._outbox.get(claim.job_id)
        now = (await self._outbox.due(1)).now
        if job is not None and job.claim_id is not None and self._liveness.dead(job.claim_id):
            claim = replace(claim, dead_claim=job.claim_id)
        return decide(job, None, claim, now, Policy())
