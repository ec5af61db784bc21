"""Every role of production in the test's own process and loop, where the queue delivers to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from listen_finalization.http.serving import uvicorn_settings
from listen_finalization.processing.protocol import Processor
from listen_finalization.settings import Settings
from listen_finalization.stack.production import Production, Role

from .cloud import Cloud


@asynccontextmanager
async def served(cloud: Cloud, processor: Processor) -> AsyncIterator[Production]:
    """Serve at the worker's port, with the settings of the cloud's processes."""
    settings = Settings.from_environment(cloud.environment())
    async with (
        await Production.open(settings, Role.ALL, processor=processor) as stack,
        serving(stack.app, listening(cloud.worker_port)),
    ):
        yield stack


@asynccontextmanager
async def serving(app: Any, listener: socket.socket) -> AsyncIterator[None]:
    """Serve an ASGI application, and close the listener at the end."""
    settings = {**uvicorn_settings(), "timeout_graceful_shutdown": 1}
    server = uvicorn.Server(uvicorn.Config(app, **settings))
    running = asyncio.ensure_future(server.serve([listener]))
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        await running


def listening(port: int = 0) -> socket.socket:
    """Take a port of loopback, by default any free one; who connects waits to be served."""
    return socket.create_server(("127.0.0.1", port), backlog=512)
