"""adm-tombstone: what a user has deleted is not finalized, and does not come back."""

from __future__ import annotations

import asyncio

from .checks import all_checks, problem
from .ground import Ground
from .house import UID, House, house

FINALIZE, ASK = "finalize", "finalization"


async def test_deleted_and_unknown_conversations_are_one_404(ground: Ground) -> None:
    async with house(ground) as home, home.client() as client:
        await home.spoken("soft")
        await home.spoken("hard")
        await home.delete("soft")
        await ground.remove_conversation(UID, "hard")
        answers = []
        for key in ("soft", "hard", "never"):
            answers.append(await client.post(f"/v1/conversations/{key}/{FINALIZE}"))
            answers.append(await client.get(f"/v1/conversations/{key}/{ASK}"))
        assert len({answer.text for answer in answers}) == 1
        for answer in answers:
            problem(answer, 404, "conversation-not-found")
        assert not await home.jobs()
        assert not home.processor.runs
        await all_checks(home)


async def deleted_in_a_race(home: House, key: str, wait: float) -> None:
    """Race a deletion with 50 finalize requests of the user who is named like the conversation."""
    async with home.client(key) as client:
        finalizing = [
            asyncio.ensure_future(client.post(f"/v1/conversations/{key}/{FINALIZE}"))
            for _ in range(50)
        ]
        await asyncio.sleep(wait)
        await home.delete(key, key)
        acknowledged = await written(home, key)
        answers = await asyncio.gather(*finalizing)
        assert {answer.status_code for answer in answers} <= {200, 404}
        problem(await client.get(f"/v1/conversations/{key}/{ASK}"), 404, "conversation-not-found")
    await home.settled()
    assert await written(home, key) == acknowledged


async def written(home: House, key: str) -> list[object]:
    tables = await home.ground.tables()
    return [
        [row["structured"] for row in tables.conversations if row["conversation_id"] == key],
        [row["text"] for row in tables.memories if row["conversation_id"] == key],
    ]


async def test_a_deletion_wins_or_comes_after(ground: Ground) -> None:
    async with house(ground) as home:
        waits = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3)
        for number, wait in enumerate(waits):
            await home.spoken(f"c{number}", uid=f"c{number}")
            await deleted_in_a_race(home, f"c{number}", wait)
        for job in await home.jobs():
            assert job.terminal
            assert job.outcome in ("fenced", "success")
        await all_checks(home)
