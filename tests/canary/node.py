"""A process that logs all it can to stderr, with a processor that spills and then crashes."""

from __future__ import annotations

import asyncio
import faulthandler
import json
import logging
import signal
import sys
from pathlib import Path
from typing import Any

from listen_finalization.domain.budgets import DispatchMode
from listen_finalization.settings import Settings
from listen_finalization.stack import Stack
from listen_finalization.testing.processor import FakeProcessor, crashes, in_turn, remembered

from .planted import SPILLS, quoting, spilling


def settings(directory: Path) -> Settings:
    return Settings(
        dispatch_mode=DispatchMode.EMBEDDED,
        data_dir=directory,
        firebase_project="canary",
        admit_loopback_destinations=True,
        backoff_seconds=0.05,
        backoff_limit_seconds=0.05,
        tasks_max_attempts=len(SPILLS) + 5,
        shutdown_grace_seconds=1,
    )


async def run(options: dict[str, Any]) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    texts = options["texts"]
    spills = [s for name, s in SPILLS.items() if name not in ("environment", "keys")]
    acts = [spilling(spill, texts) for spill in spills]
    flag = Path(options["flag"])
    spilt = options["spilt"]
    processor = FakeProcessor(
        enrich=quoting(texts) if spilt else in_turn(*acts, quoting(texts)),
        memories=crashes(flag, remembered),
    )
    async with Stack(settings(Path(options["directory"])), processor=processor):
        await ended.wait()


if __name__ == "__main__":
    faulthandler.enable()
    logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    asyncio.run(run(json.loads(sys.stdin.read())), debug=True)
