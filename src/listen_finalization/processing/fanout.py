"""Deliveries to the user's destinations: proven, marked sent, sent, their results noted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Container
from dataclasses import replace
from typing import Protocol

from listen_finalization.domain.codes import EffectCode, EffectState, Step
from listen_finalization.domain.effect_key import delivery_id, idempotency_key
from listen_finalization.domain.job import MAX_DELIVERIES, Effect, Job
from listen_finalization.errors import StoreError
from listen_finalization.lease import ConversationLostError, Lease, OwnershipLostError
from listen_finalization.processing.delivery import Delivery, DeliveryResult, Destination, Verdict
from listen_finalization.processing.destinations import Destinations

NOTE_EVERY = 1.0
"""Seconds between two writes of results while a fanout is under way (contract 9)."""

_STATES = {
    Verdict.DELIVERED: EffectState.DONE,
    Verdict.RETRY: EffectState.PENDING,
    Verdict.DROP: EffectState.DROPPED,
}


class Sender(Protocol):
    """Sends one delivery and never raises for trouble on the way."""

    async def send(self, delivery: Delivery) -> DeliveryResult: ...


class Fanout:
    """One job's deliveries; the ledger on the row says which are still owed."""

    def __init__(self, destinations: Destinations, sender: Sender) -> None:
        self._destinations = destinations
        self._sender = sender

    async def planned(self, job: Job) -> tuple[Effect, ...]:
        """Return a pending line for each enabled destination that the ledger does not name.

        A replayed job keeps the lines of its earlier life; all together are at most 32.
        """
        held = {line.destination for line in job.deliveries}
        found = [d.id for d in await self._destinations.of(job.uid) if d.id not in held]
        room = MAX_DELIVERIES - len(held)
        return tuple(Effect(Step.FANOUT, EffectState.PENDING, name) for name in found[:room])

    async def send(self, lease: Lease, body: bytes) -> bool:
        """Send what is owed and note the results; True where no delivery is owed any more.

        Everything that may leave is marked sent by one checkpoint before the first byte leaves.
        Raises the errors of `Lease.prove`.
        """
        owed = [line for line in lease.job.deliveries if not line.final]
        if not owed:
            return True
        known = {d.id: d for d in await self._destinations.of(lease.job.uid)}
        marked = [_marked(line, known) for line in owed]
        await lease.prove(tuple(marked))
        leaving = [line for line in marked if not line.final]
        tasks = {
            asyncio.ensure_future(self._deliver(lease.job, line, known, body)) for line in leaving
        }
        noted: set[asyncio.Task[Effect]] = set()
        try:
            await _note(lease, tasks, noted)
        finally:
            await _cancelled(tasks)
            await _note_rest(lease, tasks - noted)
        return all(line.final for line in lease.job.deliveries)

    async def _deliver(
        self, job: Job, line: Effect, known: dict[str, Destination], body: bytes
    ) -> Effect:
        name = line.destination or ""
        try:
            delivery = Delivery(
                destination=known[name],
                idempotency_key=idempotency_key(job.job_id, name),
                delivery_id=delivery_id(job.job_id, name),
                body=body,
            )
            result = await self._sender.send(delivery)
        except Exception:  # noqa: BLE001 - one delivery's fault must not lose the others' results
            result = DeliveryResult(EffectCode.PROTOCOL_ERROR)
        return replace(line, state=_STATES[result.verdict], code=result.code)


def _marked(line: Effect, known: Container[str | None]) -> Effect:
    """Mark a line sent, or dropped where its destination was removed since."""
    if line.destination not in known:
        return replace(line, state=EffectState.DROPPED, code=EffectCode.DESTINATION_GONE)
    return replace(line, state=EffectState.SENT, code=None, tries=line.tries + 1)


async def _note(
    lease: Lease, tasks: set[asyncio.Task[Effect]], noted: set[asyncio.Task[Effect]]
) -> None:
    """Write results within a second of their coming, at most one write a second."""
    waiting = set(tasks)
    while waiting:
        ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if waiting:
            more, waiting = await asyncio.wait(waiting, timeout=NOTE_EVERY)
            ended |= more
        await lease.prove(tuple(task.result() for task in ended))
        noted |= ended


async def _note_rest(lease: Lease, unnoted: set[asyncio.Task[Effect]]) -> None:
    """Note answers that had come when the run was ended: what got its 2xx is not called again."""
    ended = tuple(task.result() for task in unnoted if not task.cancelled())
    if ended and not lease.lost:
        with contextlib.suppress(StoreError, OwnershipLostError, ConversationLostError):
            await lease.prove(ended)


async def _cancelled(tasks: set[asyncio.Task[Effect]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
