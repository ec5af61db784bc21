"""A process like `listen-finalization up`, whose processor tells when it runs and then hangs.

`python -m bench.child DIRECTORY LEASE` serves the stack's application on a free port and writes to
stdout, each with the machine's monotonic time: `ready` once `/readyz` answers 200, `ran` when the
processor is entered.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from pathlib import Path

import httpx
import uvicorn

from bench.product import NoOp, log_to, settings
from listen_finalization.domain.content import Enrichment
from listen_finalization.http.serving import uvicorn_settings
from listen_finalization.processing.protocol import Request
from listen_finalization.stack import Stack


def tell(word: str) -> None:
    """Write one line in one piece: two threads may have something to tell at once."""
    os.write(sys.stdout.fileno(), f"{word} {time.monotonic()}\n".encode())


class Hanging(NoOp):
    """Tells that it runs, and never returns."""

    def enrich(self, request: Request) -> Enrichment | None:
        tell("ran")
        time.sleep(3_600)
        return super().enrich(request)


async def serve(directory: Path, lease: int) -> None:
    """Serve until the process is told to end."""
    listening = socket.create_server(("127.0.0.1", 0))
    stack = Stack(settings(directory, lease=lease), processor=Hanging())
    server = uvicorn.Server(uvicorn.Config(stack.app, **uvicorn_settings()))
    async with stack:
        ready = asyncio.ensure_future(_ready(listening.getsockname()[1]))
        await server.serve(sockets=[listening])
        await ready


async def _ready(port: int) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        while not await _answers(client, f"http://127.0.0.1:{port}/readyz"):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    tell("ready")


async def _answers(client: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await client.get(url)).status_code == 200
    except httpx.HTTPError:
        return False


if __name__ == "__main__":
    place = Path(sys.argv[1])
    log_to(place / "bench.log")
    asyncio.run(serve(place, int(sys.argv[2])))
