"""adm-late-context: a late request must not rewrite what a run under way is based on."""

from __future__ import annotations

import threading
from typing import Any

from listen_finalization.domain.commands import Replay
from listen_finalization.domain.decision import Decision
from listen_finalization.errors import StepFailedError

from .checks import all_checks
from .ground import Ground
from .house import Scripted, house

PATH = "/v1/conversations/c1/finalize"
A: dict[str, Any] = {"calendar_meeting_context": {"title": "A"}, "force_process": False}
B: dict[str, Any] = {"calendar_meeting_context": {"title": "B"}, "force_process": True}


async def test_a_running_or_finished_job_keeps_its_first_context(ground: Ground) -> None:
    processor = Scripted()
    processor.holds["c1"] = threading.Event()
    async with house(ground, processor) as home, home.client() as client:
        await home.spoken("c1")
        first = (await client.post(PATH, json=A)).json()

        async def leased() -> bool:
            return (await home.job_of("c1")).status == "leased" and bool(processor.runs)

        await home.until(leased)
        during = (await client.post(PATH, json=B)).json()
        assert (during["job_id"], during["status"]) == (first["job_id"], "leased")
        processor.holds["c1"].set()
        await home.settled()
        finished = await ground.conversations()
        after = (await client.post(PATH, json=B)).json()
        assert (after["job_id"], after["status"]) == (first["job_id"], "completed")
        assert await ground.conversations() == finished
        (seen,) = processor.requests["c1"]
        assert seen.content.calendar_context == {"title": "A"}
        assert seen.force_process is False
        assert (await home.job_of("c1")).force_process is False
        await all_checks(home)


async def test_a_replay_runs_on_the_first_context(ground: Ground) -> None:
    processor = Scripted()
    processor.faults["c1"] = [StepFailedError() for _ in range(3)]
    async with house(ground, processor) as home, home.client() as client:
        await home.spoken("c1")
        first = (await client.post(PATH, json=A)).json()
        await home.settled()
        buried = (await client.post(PATH, json=B)).json()
        assert (buried["job_id"], buried["status"]) == (first["job_id"], "dead_letter")
        assert buried["conversation"] == {"id": "c1", "status": "failed", "discarded": True}
        job = await home.job_of("c1")
        replayed = await home.outbox.apply(Replay(job.job_id, job.dispatch_generation, "0" * 32))
        assert isinstance(replayed, Decision) and replayed.job is not None
        await home.site.replayed(replayed.job)
        await home.settled()
        job = await home.job_of("c1")
        assert (job.status, job.force_process) == ("completed", False)
        assert all(
            request.content.calendar_context == {"title": "A"} and not request.force_process
            for request in processor.requests["c1"]
        )
        await all_checks(home)
