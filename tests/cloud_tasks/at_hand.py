"""A server on a clock of the test's own, the real client, and a receiver."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from google.cloud import tasks_v2

from listen_finalization.dispatch.cloud_tasks import open_client
from listen_finalization.testing.clock import FakeClock
from listen_finalization.testing.cloud_tasks import CloudTasksServer

from .receiver import Receiver

LOCATION = "projects/demo/locations/here"
QUEUE = f"{LOCATION}/queues/jobs"


@cache
def signing_key() -> RSAPrivateKey:
    """Return one key for all servers: making one takes a tenth of a second."""
    return generate_private_key(public_exponent=65537, key_size=2048)


class Bench:
    """What a test of the server has at hand."""

    def __init__(
        self, server: CloudTasksServer, client: tasks_v2.CloudTasksAsyncClient, clock: FakeClock
    ) -> None:
        self.server = server
        self.client = client
        self.clock = clock
        self.receiver = Receiver()

    def advance(self, seconds: float) -> None:
        """Move the clock, and let the server look at it."""
        self.clock.advance(seconds)
        self.server.wake()

    def moment(self, ahead: float = 0) -> dt.datetime:
        return dt.datetime.fromtimestamp(self.clock.monotonic() + ahead, dt.UTC)

    def task(self, path: str = "/", name: str | None = None, **fields: Any) -> tasks_v2.Task:
        """Return a task for the receiver; what `HttpRequest` has goes there."""
        request = {key: fields.pop(key) for key in _REQUEST.intersection(fields)}
        named = {} if name is None else {"name": f"{QUEUE}/tasks/{name}"}
        http = tasks_v2.HttpRequest(url=self.receiver.url + path, **request)
        return tasks_v2.Task(http_request=http, **named, **fields)

    async def create(
        self, path: str = "/", name: str | None = None, **fields: Any
    ) -> tasks_v2.Task:
        return await self.client.create_task(
            parent=QUEUE, task=self.task(path, name, **fields), timeout=10
        )

    async def ended(self, name: str) -> None:
        """Wait until a task is gone: delivered, or out of attempts."""
        while name in [task.name async for task in await self.client.list_tasks(parent=QUEUE)]:
            pass


_REQUEST = frozenset({"http_method", "headers", "body", "oidc_token"})


@asynccontextmanager
async def bench(**options: Any) -> AsyncIterator[Bench]:
    clock = FakeClock()
    given = {"queues": [QUEUE], "clock": clock, "key": signing_key(), **options}
    async with CloudTasksServer(**given) as server:
        client = await open_client(server.address)
        made = Bench(server, client, clock)
        async with made.receiver:
            yield made
        await client.transport.close()  # type: ignore[no-untyped-call]


def retry(**fields: Any) -> tasks_v2.RetryConfig:
    """Return a retry configuration; durations are seconds."""
    return tasks_v2.RetryConfig(
        **{
            key: dt.timedelta(seconds=value) if key.endswith(("backoff", "duration")) else value
            for key, value in fields.items()
        }
    )
