"""dsp-burst-after-outage: a backlog drains at the configured width, and customers do not notice.

The short form has fewer jobs and a shorter time of throttling; `full` has the numbers of the case.
"""

from __future__ import annotations

import asyncio
import statistics
import threading
import time

import pytest

from listen_finalization.domain.codes import FailureCode
from listen_finalization.domain.content import Enrichment, Segment
from listen_finalization.errors import EnvironmentFaultError
from listen_finalization.processing.protocol import Request

from .checks import all_checks
from .ground import FileGround, Ground, ProjectGround
from .house import UID, House, Scripted, house

SLOTS = 4


class Throttling(Scripted):
    """Takes its time, notes how many run at once, and refuses every other call for a while."""

    def __init__(self, delay: float, throttled: float) -> None:
        super().__init__()
        self.delay = delay
        self.throttled = throttled
        self.ends = 0.0
        self.at_once = self.most = self.calls = self.refused = 0
        self._lock = threading.Lock()

    def throttle(self) -> None:
        self.ends = time.monotonic() + self.throttled

    def enrich(self, request: Request) -> Enrichment | None:
        with self._lock:
            self.calls += 1
            refuse = time.monotonic() < self.ends and self.calls % 2 == 0
            self.refused += refuse
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        time.sleep(self.delay)
        with self._lock:
            self.at_once -= 1
        if refuse:
            raise EnvironmentFaultError(FailureCode.ENVIRONMENT_PROVIDER, retry_after=1)
        return super().enrich(request)


async def latency(home: House, number: int) -> list[float]:
    """Ask for finalize and status as a customer would; return how long each pair took."""
    waits = []
    async with home.client() as client:
        for _ in range(number):
            begun = time.perf_counter()
            await client.post("/v1/conversations/mine/finalize")
            told = await client.get("/v1/conversations/mine/finalization")
            assert told.status_code == 200
            waits.append(time.perf_counter() - begun)
            await asyncio.sleep(0.02)
    return waits


async def burst(ground: Ground, jobs: int, delay: float, throttled: float) -> None:
    processor = Throttling(delay, throttled)
    chosen = {"slots": SLOTS, "finalize_per_minute": 6_000}
    async with (
        house(ground, processor, running=False, **chosen) as home,
        home.client() as client,
    ):
        await home.spoken("mine")
        for number in range(jobs):
            key = f"c{number}"
            said = Segment(f"{key}:1", "Ada", 0.0, 1.0, "Words.")
            await home.conversations.append(UID, key, [said])
            assert (await client.post(f"/v1/conversations/{key}/finalize")).status_code == 200
        idle = statistics.median(await latency(home, 20))
        processor.throttle()
        await home.site.start()
        busy = statistics.median(await latency(home, 30))
        await home.settled(limit=jobs * delay / SLOTS * 3 + throttled + 60)
        found = await home.jobs()
        assert processor.most <= SLOTS
        assert {job.outcome for job in found} == {"success"}
        assert 0 < processor.refused == sum(job.releases for job in found)
        assert processor.calls == processor.refused + len(found)
        print(
            f"\n{jobs} jobs: {processor.calls} calls, {processor.refused} throttled, at most"
            f" {processor.most} at once; customers {idle * 1e3:.1f} ms idle, {busy * 1e3:.1f} ms"
        )
        assert busy < 2 * idle + 0.25
        await all_checks(home)


@pytest.mark.timeout(100)
async def test_a_backlog_drains_at_the_configured_width(ground: Ground) -> None:
    await burst(
        ground, jobs=60 if isinstance(ground, ProjectGround) else 120, delay=0.02, throttled=1.0
    )


@pytest.mark.full
@pytest.mark.timeout(900)
async def test_two_thousand_jobs_drain_at_the_configured_width(file_ground: FileGround) -> None:
    await burst(file_ground, jobs=2_000, delay=0.5, throttled=60)
