"""wrk-abandoned-thread: the run times out, its thread goes on, and nothing comes of it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from listen_finalization.testing.processor import FakeProcessor, hangs, in_turn, record

from .cloud import cloud
from .ground import Ground

TIMEOUT = 0.3


def step_threads() -> int:
    return sum(thread.name == "step" for thread in threading.enumerate())


@pytest.mark.parametrize("final", [False, True])
async def test_a_late_result_is_refused_and_sends_nothing(final: bool, ground: Ground) -> None:
    go = threading.Event()
    processor = FakeProcessor(enrich=in_turn(hangs(go), record))
    threads = step_threads()
    async with cloud(ground, processor, run_timeout=TIMEOUT) as here:
        job = await here.admitted(subscribers=2)
        retry = 4 if final else 0
        told = await here.deliver(job, retry=retry)
        sender, slots = here.workshop.sender, here.workshop.slots
        if final:
            assert told == (200, "dead_lettered", "run_timeout")
        else:
            assert told == (500, "failed", "run_timeout")
            assert await here.deliver(job, retry=1) == (200, "completed", None)
        assert slots.outlived == 1
        sent, calls = len(sender.sent), processor.count()
        before = await here.workshop.job(job), await here.workshop.record()

        go.set()
        async with asyncio.timeout(5):
            while slots.outlived:  # noqa: ASYNC110 - the step is in a thread
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
        assert (await here.workshop.job(job), await here.workshop.record()) == before
        assert (len(sender.sent), processor.count()) == (sent, calls)
        assert sent == (0 if final else 2)
        await here.checks()
    async with asyncio.timeout(5):
        while step_threads() > threads:  # noqa: ASYNC110 - threads tell nobody of their end
            await asyncio.sleep(0.005)
