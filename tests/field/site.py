"""What a house is built of: the embedded stack, or every role of production with its queue."""

from __future__ import annotations

import socket
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Protocol

import httpx
from fastapi import FastAPI
from google.cloud.tasks_v2 import CloudTasksAsyncClient

from integration.cloud import INVOKER, Cloud
from integration.in_process import listening, serving
from listen_finalization.auth.issuer import LocalIssuer
from listen_finalization.dispatch.cloud_tasks import open_client
from listen_finalization.domain.budgets import DispatchMode
from listen_finalization.domain.job import Job
from listen_finalization.http.answers import record_answer
from listen_finalization.observe.signals import Signals
from listen_finalization.ports import Store
from listen_finalization.processing.protocol import Processor
from listen_finalization.settings import Settings
from listen_finalization.stack import Stack
from listen_finalization.stack.embedded import LOCAL_AUDIENCE, LOCAL_INVOKER
from listen_finalization.stack.production import Production, Role

from .ground import FileGround, Ground, ProjectGround


class Site(Protocol):
    """One process of the product and the servers around it; nobody dispatches before `start`."""

    settings: Settings

    @property
    def app(self) -> FastAPI: ...

    @property
    def store(self) -> Store: ...

    @property
    def signals(self) -> Signals: ...

    def user_token(self, uid: str) -> str: ...

    def task_token(self) -> str: ...

    async def start(self) -> None:
        """Let the background work begin, and the deliveries with it."""
        ...

    async def replayed(self, job: Job) -> None:
        """Hand over what was replayed at the store, as the operator's command does."""
        ...

    async def record(self, uid: str, key: str) -> dict[str, Any]:
        """Return a conversation's record as its owner sees it."""
        ...

    async def delete(self, uid: str, key: str) -> None:
        """Delete a conversation as its owner does."""
        ...

    async def close(self) -> None: ...


class EmbeddedSite:
    """The embedded stack over one file."""

    def __init__(self, ground: FileGround, processor: Processor, chosen: dict[str, Any]) -> None:
        self.settings = Settings(
            dispatch_mode=DispatchMode.EMBEDDED,
            data_dir=ground.directory,
            firebase_project="house",
            **chosen,
        )
        self._stack = Stack(self.settings, processor=processor)
        self._tasks = LocalIssuer.open(ground.directory, "tasks")
        self.app = self._stack.app
        self.store: Store = self._stack.store
        self.signals = self._stack.signals

    def user_token(self, uid: str) -> str:
        return self._stack.user_token(uid)

    def task_token(self) -> str:
        return self._tasks.mint_task_token(LOCAL_AUDIENCE, LOCAL_INVOKER)

    async def start(self) -> None:
        await self._stack.__aenter__()

    async def replayed(self, job: Job) -> None:
        del job
        self._stack.dispatcher.wake()

    async def record(self, uid: str, key: str) -> dict[str, Any]:
        answer = await self._asked("GET", uid, key)
        assert answer.status_code == 200
        told: dict[str, Any] = answer.json()
        return told

    async def delete(self, uid: str, key: str) -> None:
        assert (await self._asked("DELETE", uid, key)).status_code == 204

    async def _asked(self, verb: str, uid: str, key: str) -> httpx.Response:
        transport = httpx.ASGITransport(self.app)
        headers = {"Authorization": f"Bearer {self.user_token(uid)}"}
        async with httpx.AsyncClient(transport=transport, base_url="https://h.example") as client:
            return await client.request(verb, f"/v1/conversations/{key}", headers=headers)

    async def close(self) -> None:
        await self._stack.__aexit__(None, None, None)


class ProductionSite:
    """All roles in this process, over Firestore and a Cloud Tasks server, with Google's tokens."""

    def __init__(
        self,
        cloud: Cloud,
        stack: Production,
        queue: CloudTasksAsyncClient,
        listener: socket.socket,
    ) -> None:
        """For `open_production`."""
        self._cloud = cloud
        self._stack = stack
        self._queue = queue
        self._listener = listener
        self._closing = AsyncExitStack()
        self.settings = stack.settings
        self.app = stack.app
        self.store: Store = stack.store
        self.signals = stack.signals

    def user_token(self, uid: str) -> str:
        return self._cloud.token(uid)

    def task_token(self) -> str:
        return self._cloud.tasks.identity.token(INVOKER, self._cloud.audience)

    async def start(self) -> None:
        await self._stack.__aenter__()
        await self._closing.enter_async_context(serving(self.app, self._listener))
        await self._queue.resume_queue(name=self._cloud.queue_name)

    async def replayed(self, job: Job) -> None:
        await self._stack._queue.dispatcher.hand_over(job)

    async def record(self, uid: str, key: str) -> dict[str, Any]:
        """Read as the application does, whose routes these are in production."""
        record = await self.store.conversations.find(uid, key)
        assert record is not None
        return record_answer(record).model_dump(mode="json")

    async def delete(self, uid: str, key: str) -> None:
        assert await self.store.conversations.delete(uid, key)

    async def close(self) -> None:
        await self._queue.pause_queue(name=self._cloud.queue_name)
        await self._queue.transport.close()  # type: ignore[no-untyped-call]
        await self._closing.aclose()
        self._listener.close()
        await self._stack.__aexit__(None, None, None)
        await self._cloud.__aexit__(None, None, None)


async def open_production(
    ground: ProjectGround, processor: Processor, chosen: dict[str, Any]
) -> ProductionSite:
    cloud = Cloud(ground.directory, ground.host, project=ground.project)
    listener = listening(cloud.worker_port)
    await cloud.__aenter__()
    queue = await open_client(cloud.tasks.address)
    await queue.pause_queue(name=cloud.queue_name)
    settings = replace(Settings.from_environment(cloud.environment()), **chosen)
    stack = await Production.open(settings, Role.ALL, processor=processor)
    return ProductionSite(cloud, stack, queue, listener)


async def open_site(ground: Ground, processor: Processor, chosen: dict[str, Any]) -> Site:
    """Open the product as it is run on such a ground; nobody dispatches yet."""
    if isinstance(ground, ProjectGround):
        return await open_production(ground, processor, chosen)
    assert isinstance(ground, FileGround)
    return EmbeddedSite(ground, processor, chosen)
