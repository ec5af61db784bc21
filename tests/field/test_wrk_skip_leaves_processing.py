"""wrk-skip-leaves-processing: whatever a run comes to, job and conversation end together."""

from __future__ import annotations

from typing import Any

import pytest

from listen_finalization.domain.content import ActionItem, Enrichment
from listen_finalization.testing.processor import FakeProcessor, gives, oversized, record

from .cloud import cloud
from .ground import Ground

ODD: Any = object()


@pytest.mark.parametrize(
    ("name", "act", "status", "discarded"),
    [
        ("success", record, "completed", False),
        ("oversized", oversized, "completed", False),
        ("none", gives(None), "completed", False),
        ("discard", gives(Enrichment("t", "o", discard=True)), "completed", True),
        ("empty structure", gives(Enrichment("", "")), "completed", False),
        ("partial structure", gives(Enrichment("Title", "")), "completed", False),
        ("unknown enum", gives(Enrichment("t", "o", "gossip")), "failed", True),
        ("wrong type", gives({"title": "t"}), "failed", True),
        ("half a record", gives(Enrichment("t", ODD)), "failed", True),
        ("odd item", gives(Enrichment("t", "o", "work", (ActionItem(ODD),))), "failed", True),
        ("skip word", gives("skip"), "failed", True),
    ],
)
async def test_job_and_conversation_are_terminal_together(
    name: str, act: Any, status: str, discarded: bool, ground: Ground
) -> None:
    async with cloud(ground, FakeProcessor(enrich=act)) as here:
        job = await here.admitted()
        for retry in range(5):
            told = await here.deliver(job, retry=retry)
            held = await here.workshop.conversation()
            over = held.status in ("completed", "failed")
            assert (await here.workshop.job(job)).terminal is over
            if status == "failed" and retry < 4:
                assert told == (500, "failed", "processor_invalid_result")
        held = await here.workshop.conversation()
        assert (held.status, held.discarded) == (status, discarded)
        assert (await here.status())["terminal"] is True
        await here.checks()
