"""One process of the stack whose processor works in a forked pool: `pool_node.py '<options>'`.

The first step that ever runs never ends; all write down the process that they ran in.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from listen_finalization.domain.budgets import DispatchMode
from listen_finalization.domain.content import Enrichment, Memory
from listen_finalization.processing.protocol import Request
from listen_finalization.settings import Settings
from listen_finalization.stack import Stack


def work(pids: Path) -> None:
    """Note this process; the first to come here stays."""
    os.dup2(2, 1)  # the plant waits until nobody has its node's output open
    first = not pids.exists()
    with pids.open("a", encoding="ascii") as file:
        file.write(f"{os.getpid()}\n")
    while first:
        time.sleep(60)


class Pooled:
    """A processor as users write them: its work is in processes, made at the first step."""

    def __init__(self, pids: Path) -> None:
        self._pids = pids
        self._pool: ProcessPoolExecutor | None = None

    def enrich(self, request: Request) -> Enrichment:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("fork"))
        self._pool.submit(work, self._pids).result()
        return Enrichment("A conversation", "Somebody spoke.")

    def memories(self, request: Request, enrichment: Enrichment) -> Sequence[Memory]:
        return []


async def run(options: dict[str, Any]) -> None:
    settings = Settings(
        dispatch_mode=DispatchMode.EMBEDDED,
        data_dir=Path(options["directory"]),
        firebase_project="local",
        **options["settings"],
    )
    async with Stack(settings, processor=Pooled(Path(options["log"]))):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(run(json.loads(sys.argv[1])))
