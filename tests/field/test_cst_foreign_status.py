"""cst-foreign-status: nobody learns whether somebody else's conversation exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from listen_finalization.domain.commands import ClaimJob
from listen_finalization.errors import StepFailedError

from .checks import all_checks, problem
from .house import House, Scripted, house

STATES = ("queued", "leased", "completed", "dead_letter", "blocked_byok")


async def prepared(home: House) -> None:
    """Bring one conversation of Ada's into each state."""
    home.processor.faults["dead_letter"] = [StepFailedError() for _ in range(3)]
    for key in STATES:
        await home.spoken(key, byok=key == "blocked_byok")
        async with home.client() as client:
            assert (await client.post(f"/v1/conversations/{key}/finalize")).status_code == 200
    for key, times in (("completed", 1), ("dead_letter", 3)):
        for _ in range(times):
            job = await home.job_of(key)
            await home.deliver(job.job_id, job.dispatch_generation)
    job = await home.job_of("leased")
    await home.outbox.apply(ClaimJob(job.job_id, job.dispatch_generation, "f" * 32))
    for key in STATES:
        assert (await home.job_of(key)).status == key


async def test_a_foreign_conversation_is_answered_like_none(tmp_path: Path) -> None:
    async with house(tmp_path, Scripted(), running=False) as home:
        await prepared(home)
        before = (home.rows(), home.conversation_rows())
        ids = [(await home.job_of(key)).job_id for key in STATES]
        async with home.client("eve") as client:
            seen = set()
            for key in (*STATES, *ids, "never", "0" * 36):
                for verb, tail in (("GET", "finalization"), ("POST", "finalize")):
                    answer = await client.request(verb, f"/v1/conversations/{key}/{tail}")
                    problem(answer, 404, "conversation-not-found")
                    seen.add((answer.text, str(sorted(answer.headers.items()))))
            assert len(seen) == 1
        assert (home.rows(), home.conversation_rows()) == before
        await all_checks(home)


async def test_a_foreign_conversation_costs_the_same_reads_as_none(tmp_path: Path) -> None:
    """The timing class: what is read does not depend on whether somebody else has it."""
    async with house(tmp_path, Scripted(), running=False) as home:
        await prepared(home)
        calls: list[str] = []
        store = home.stack.store
        costs = set()
        real = type(store).read

        async def read(query: Any, *arguments: Any) -> Any:
            calls.append(query.__name__)
            return await real(store, query, *arguments)

        store.read = read  # type: ignore[method-assign]
        async with home.client("eve") as client:
            for key in (*STATES, "never"):
                calls.clear()
                await client.get(f"/v1/conversations/{key}/finalization")
                await client.post(f"/v1/conversations/{key}/finalize")
                costs.add(tuple(calls))
        assert costs == {("standing",)}
