"""The worker of `cloud`, behind a real queue: gRPC, HTTP deliveries, OIDC tokens, two clocks."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import httpx
import uvicorn
from fastapi.responses import PlainTextResponse
from google.cloud import tasks_v2

from listen_finalization.auth.keys import HttpKeySource
from listen_finalization.auth.policy import PolicyName, TokenPolicy
from listen_finalization.auth.verifier import TokenVerifier
from listen_finalization.dispatch.cloud_tasks import CloudTasksDispatcher, open_client
from listen_finalization.http.app import build_app
from listen_finalization.http.serving import hush, uvicorn_settings
from listen_finalization.http.tasks import WorkerRoute
from listen_finalization.settings import RUN_PATH
from listen_finalization.testing.clock import FakeClock
from listen_finalization.testing.cloud_tasks import CloudTasksServer
from listen_finalization.testing.processor import FakeProcessor

from .cloud import AUDIENCE, INVOKER, Cloud, cloud, google_key
from .ground import Ground

EVERY_SECOND: dict[str, Any] = {
    "min_backoff": timedelta(seconds=1),
    "max_backoff": timedelta(seconds=1),
}
QUEUE = "projects/omi-prod/locations/here/queues/conversation-finalization"


@dataclass(frozen=True)
class Delivered:
    """One delivery that the worker answered."""

    retry: str
    status: int


class Queued:
    """A cloud whose hand-overs go to a real queue; `queue_clock` is the queue's alone."""

    def __init__(
        self, cloud: Cloud, server: CloudTasksServer, queue_clock: FakeClock, *, turned_away: int
    ) -> None:
        self.cloud = cloud
        self._turned_away = turned_away
        self.server = server
        self.queue_clock = queue_clock
        self.answers: list[Delivered] = []
        self.client: tasks_v2.CloudTasksAsyncClient
        self._changed = asyncio.Condition()

    def pass_in_queue(self, seconds: float) -> None:
        self.queue_clock.advance(seconds)
        self.server.wake()

    async def names(self) -> list[str]:
        """Return the names of the tasks that the queue has."""
        tasks = await self.client.list_tasks(parent=QUEUE)
        return [task.name.rpartition("/")[2] async for task in tasks]

    async def answered(self, count: int) -> list[Delivered]:
        """Wait until the worker has answered that many deliveries."""
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(lambda: len(self.answers) >= count)
        return self.answers

    async def spent(self) -> list[Delivered]:
        """Let time pass in the queue until it has no task; return what was answered."""
        async with asyncio.timeout(20):
            while await self.names():
                self.pass_in_queue(1)
        return self.answers

    def noting(self, app: Any) -> Any:
        """Wrap the worker so that every delivery is noted, and the first are turned away."""

        async def noted(scope: Any, receive: Any, send: Any) -> None:
            async def told(message: Any) -> None:
                if message["type"] == "http.response.start":
                    headers = dict(scope["headers"])
                    retry = headers[b"x-cloudtasks-taskretrycount"].decode()
                    async with self._changed:
                        self.answers.append(Delivered(retry, message["status"]))
                        self._changed.notify_all()
                await send(message)

            if scope["type"] != "http":
                await app(scope, receive, send)
            elif len(self.answers) < self._turned_away:
                await PlainTextResponse("no instance", 503)(scope, receive, told)
            else:
                await app(scope, receive, told)

        return noted


@asynccontextmanager
async def queued(
    ground: Ground,
    processor: FakeProcessor,
    *,
    deadline: float = 1800,
    reachable: asyncio.Event | None = None,
    turned_away: int = 0,
    **retry: Any,
) -> AsyncIterator[Queued]:
    """Serve the worker at once, or once `reachable` is set: until then connections are refused.

    The platform answers 503 to the first `turned_away` deliveries in the worker's place.
    """
    queue_clock = FakeClock()
    async with (
        CloudTasksServer(clock=queue_clock, key=google_key()) as server,
        cloud(ground, processor) as here,
        httpx.AsyncClient() as http,
    ):
        made = Queued(here, server, queue_clock, turned_away=turned_away)
        made.client = await open_client(server.address)
        await made.client.update_queue(
            queue=tasks_v2.Queue(name=QUEUE, retry_config=tasks_v2.RetryConfig(**retry))
        )
        keys = HttpKeySource(server.keys_url, http)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{listener.getsockname()[1]}{RUN_PATH}"
            dispatcher = await _relayed(made, url, deadline)
            serving = asyncio.create_task(_serve(made, keys, listener, reachable))
            try:
                yield made
            finally:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)
        await dispatcher.close()
        await made.client.transport.close()  # type: ignore[no-untyped-call]
        await keys.aclose()


async def _relayed(made: Queued, url: str, deadline: float) -> CloudTasksDispatcher:
    """Put the real dispatcher behind the name that the workshop's services hold."""
    workshop = made.cloud.workshop
    dispatcher = CloudTasksDispatcher(
        await open_client(made.server.address),
        QUEUE,
        handler_url=url,
        audience=AUDIENCE,
        invoker=INVOKER,
        deadline_seconds=deadline,
        signals=workshop.signals,
        now=made.queue_clock.monotonic,
    )
    workshop.dispatcher.hand_over = dispatcher.hand_over  # type: ignore[method-assign]
    return dispatcher


async def _serve(
    made: Queued, keys: HttpKeySource, listener: socket.socket, reachable: asyncio.Event | None
) -> None:
    if reachable is not None:
        await reachable.wait()
    here = made.cloud
    policy = TokenPolicy.google(PolicyName.TASKS, AUDIENCE, email=INVOKER)
    worker = WorkerRoute(
        TokenVerifier(policy, keys), here.workshop.finalizer, here.workshop.signals
    )
    app = made.noting(build_app(replace(here._services(), worker=worker)))
    hush()
    settings = {**uvicorn_settings(), "timeout_graceful_shutdown": 1}
    server = uvicorn.Server(uvicorn.Config(app, **settings))
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
    try:
        await server.serve(sockets=[listener])
    finally:
        await server.shutdown(sockets=[listener])
