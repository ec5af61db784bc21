"""adm-discarded-or-empty: every such request has an answer, and nothing stays in between."""

from __future__ import annotations

import pytest

from .checks import all_checks, problem
from .ground import Ground
from .house import UID, Scripted, house


@pytest.mark.parametrize("force", [False, True])
async def test_nothing_empty_or_discarded_is_touched(ground: Ground, force: bool) -> None:
    async with house(ground) as home, home.client() as client:
        await home.conversations.append("ada", "empty", [])
        await home.spoken("away")
        await ground.set_conversation(UID, "away", {"discarded": True})
        before = await ground.conversations()
        body = {"force_process": force}
        empty = await client.post("/v1/conversations/empty/finalize", json=body)
        away = await client.post("/v1/conversations/away/finalize", json=body)
        problem(empty, 409, "conversation-empty")
        problem(away, 409, "conversation-discarded")
        assert await ground.conversations() == before
        assert not await home.jobs()
        assert not home.processor.runs
        status = await client.get("/v1/conversations/away/finalization")
        assert (status.json()["terminal"], status.json()["job_id"]) == (True, None)
        problem(await client.get("/v1/conversations/empty/finalization"), 404, "not-finalized")
        await all_checks(home)


@pytest.mark.parametrize("force", [False, True])
async def test_photos_alone_are_content(ground: Ground, force: bool) -> None:
    async with house(ground) as home, home.client() as client:
        await home.conversations.append("ada", "c1", [], photos=2)
        answer = await client.post("/v1/conversations/c1/finalize", json={"force_process": force})
        assert answer.json()["conversation"]["status"] == "processing"
        await home.settled()
        record = await home.record("c1")
        assert record["conversation"]["status"] == "completed"
        assert record["structured"]["title"] == "About photos"
        assert home.processor.runs["photos"] == 1
        await all_checks(home)


@pytest.mark.parametrize("force", [False, True])
async def test_a_run_that_discards_ends_terminal_within_one_run(
    ground: Ground, force: bool
) -> None:
    processor = Scripted()
    processor.discards.add("c1")
    async with house(ground, processor) as home, home.client() as client:
        await home.spoken("c1")
        await client.post("/v1/conversations/c1/finalize", json={"force_process": force})
        await home.settled()
        told = await home.record("c1")
        discarded = not force
        assert told["conversation"] == {
            "id": "c1",
            "status": "completed",
            "discarded": discarded,
        }
        assert bool(told["memories"]) is force
        assert told["structured"]["title"] == "About c1"
        asked = (await client.get("/v1/conversations/c1/finalization")).json()
        assert (asked["status"], asked["terminal"]) == ("completed", True)
        assert processor.runs["c1"] == 1
        again = await client.post("/v1/conversations/c1/finalize", json={"force_process": True})
        assert (again.status_code, again.json()["status"]) == (200, "completed")
        await home.settled()
        assert processor.runs["c1"] == 1
        await all_checks(home)
