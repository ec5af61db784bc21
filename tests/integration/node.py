"""One process of the embedded stack, to be killed: `python node.py '<options as JSON>'`.

It prints `ready` when it runs, and drains at SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

from listen_finalization.domain.budgets import DispatchMode
from listen_finalization.settings import Settings
from listen_finalization.stack import Stack
from listen_finalization.testing.processor import FakeProcessor


def node_settings(directory: Path, **changes: Any) -> Settings:
    chosen: dict[str, Any] = {
        "firebase_project": "local",
        "lease_seconds": 15,
        "backoff_seconds": 0.2,
        "backoff_limit_seconds": 1.0,
        "admit_loopback_destinations": True,
        "shutdown_grace_seconds": 2,
        **changes,
    }
    return Settings(dispatch_mode=DispatchMode.EMBEDDED, data_dir=directory, **chosen)


async def run(options: dict[str, Any]) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    processor = FakeProcessor(delay=options["delay"], log=Path(options["log"]))
    settings = node_settings(Path(options["directory"]), **options["settings"])
    async with Stack(settings, processor=processor):
        print("ready", flush=True)
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(run(json.loads(sys.argv[1])))
