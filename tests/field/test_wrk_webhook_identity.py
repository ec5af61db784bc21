"""wrk-webhook-identity: a receiver that drops repeated ids sees every event once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from integration.receivers import Received
from listen_finalization.domain.commands import ClaimJob, Replay
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.effect_key import delivery_id, idempotency_key
from listen_finalization.errors import StepFailedError, StoreBrokenError
from listen_finalization.ports import Outbox
from listen_finalization.processing.signing import parse_secret, verify
from listen_finalization.processing.webhooks import WebhookSender
from listen_finalization.testing.processor import FakeProcessor, fails, in_turn, remembered
from listen_finalization.testing.workshop import UID

from .cloud import Cloud, cloud
from .ground import Ground

LIMIT = 0.3
"""Seconds that a delivery may take here."""


class Receiver:
    """A receiver of raw HTTP that verifies signatures and drops ids that it knows."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.events: set[str] = set()
        self.turns: list[str] = []
        self.secret = b""
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        pairs = (line.partition(": ") for line in head.split("\r\n")[1:])
        headers = {name.lower(): value for name, _, value in pairs}
        body = await reader.readexactly(int(headers["content-length"]))
        known = verify(self.secret, body, headers=headers, now=int(headers["webhook-timestamp"]))
        key = headers["idempotency-key"]
        self.received.append(Received("/", known, key, hashlib.sha256(body).hexdigest()))
        self.events.add(known)
        await self._answer(writer)
        writer.close()

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        turn = self.turns.pop(0) if self.turns else "200"
        if turn == "reset":
            writer.transport.abort()
            return
        if turn == "late":
            await asyncio.sleep(2 * LIMIT)
            turn = "200"
        writer.write(f"HTTP/1.1 {turn} x\r\nContent-Length: 0\r\n\r\n".encode())


@asynccontextmanager
async def subscribed(
    ground: Ground, processor: FakeProcessor | None = None
) -> AsyncIterator[tuple[Cloud, Receiver]]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    async with (
        server,
        WebhookSender(admit_loopback=True, time_limit=LIMIT) as sender,
        cloud(ground, processor, sender=sender) as here,
    ):
        url = f"http://127.0.0.1:{receiver.port}/hook"
        receiver.secret = parse_secret(await here.workshop.destinations.add(UID, "crm", url))
        yield here, receiver


def once(receiver: Receiver, job_id: str, calls: int) -> None:
    """Every attempt was the same event with the same bytes."""
    assert len(receiver.received) == calls
    assert receiver.events == {delivery_id(job_id, "crm")}
    assert {one.key for one in receiver.received} == {idempotency_key(job_id, "crm")}
    assert len({one.body for one in receiver.received}) == 1


@pytest.mark.parametrize("first", ["500", "429", "reset", "late"])
async def test_a_repeated_delivery_is_the_same_event(first: str, ground: Ground) -> None:
    async with subscribed(ground) as (here, receiver):
        receiver.turns = [first, "200"]
        job = await here.admitted()
        assert (await here.deliver(job))[0] == 500
        assert (await here.deliver(job, retry=1))[1] == "completed"
        once(receiver, job.job_id, 2)
        await here.checks()


class Dying:
    """The process of this outbox dies before the write that `fatal` names."""

    def __init__(self, outbox: Outbox, fatal: Callable[[Any], bool]) -> None:
        self._outbox = outbox
        self.fatal = fatal
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._outbox, name)

    async def apply(self, command: Any) -> Any:
        self.dead = self.dead or self.fatal(command)
        if self.dead:
            raise StoreBrokenError
        return await self._outbox.apply(command)


def notes_a_result(command: Any) -> bool:
    return any(e.state == "done" and e.destination for e in getattr(command, "effects", ()))


async def test_a_kill_right_after_the_receiver_accepted_sends_the_same_event(
    ground: Ground,
) -> None:
    async with subscribed(ground) as (here, receiver):
        job = await here.admitted()
        outbox = here.workshop.store.outbox
        here.workshop.finalizer._outbox = Dying(outbox, notes_a_result)
        assert (await here.deliver(job))[0] == 503
        here.workshop.finalizer._outbox = outbox
        here.clock.advance(61)
        assert (await here.deliver(job, retry=1))[1] == "completed"
        once(receiver, job.job_id, 2)
        await here.checks()


async def test_a_replay_of_a_job_that_died_after_the_webhook_does_not_send_it_again(
    ground: Ground,
) -> None:
    """The delivery was noted, then the worker died until the budget was spent: it is not owed."""
    async with subscribed(ground) as (here, receiver):
        job = await here.admitted()
        outbox = here.workshop.store.outbox
        settles = Dying(outbox, lambda command: type(command).__name__ == "Complete")
        here.workshop.finalizer._outbox = settles
        await here.deliver(job)
        here.workshop.finalizer._outbox = outbox
        for number in range(4):
            here.clock.advance(61)
            await outbox.apply(ClaimJob(job.job_id, 1, f"{number}" * 32))
        here.clock.advance(61)
        assert (await here.deliver(job))[1] == "completed"
        once(receiver, job.job_id, 1)
        await here.checks()


async def test_a_replay_after_a_failed_memories_step_keeps_the_identity(ground: Ground) -> None:
    dies = [fails(StepFailedError)] * 5
    processor = FakeProcessor(memories=in_turn(*dies, remembered))
    async with subscribed(ground, processor) as (here, receiver):
        receiver.turns = ["500", "200"]
        job = await here.admitted()
        for retry in range(5):
            await here.deliver(job, retry=retry)
        dead = await here.workshop.job(job)
        assert dead.status == "dead_letter"
        replay = Replay(job.job_id, dead.dispatch_generation, "c" * 32)
        assert isinstance(await here.workshop.outbox.apply(replay), Decision)
        assert (await here.deliver(job))[1] == "failed"
        assert (await here.deliver(job, retry=1))[1] == "completed"
        once(receiver, job.job_id, 2)
        await here.checks()
