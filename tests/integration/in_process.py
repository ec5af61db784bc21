"""Every role of production in the test's own process and loop, where the queue delivers to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

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
    async with await Production.open(settings, Role.ALL, processor=processor) as stack:
        with socket.create_server(("127.0.0.1", cloud.worker_port)) as listener:
            server = uvicorn.Server(uvicorn.Config(stack.app, **uvicorn_settings()))
            running = asyncio.ensure_future(server.serve([listener]))
            while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.01)
            try:
                yield stack
            finally:
                server.should_exit = True
                await running
