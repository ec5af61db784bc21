"""cst-foreign-status: nobody learns whether somebody else's conversation exists."""

from __future__ import annotations

from typing import Any

from listen_finalization.domain.commands import ClaimJob
from listen_finalization.errors import StepFailedError
from listen_finalization.outbox.firestore import FirestoreStore

from .checks import all_checks, problem
from .ground import Ground, traces
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


async def test_a_foreign_conversation_is_answered_like_none(ground: Ground) -> None:
    async with house(ground, Scripted(), running=False) as home:
        await prepared(home)
        before = await traces(ground)
        ids = [(await home.job_of(key)).job_id for key in STATES]
        async with home.client("eve") as client:
            seen = set()
            for key in (*STATES, *ids, "never", "0" * 36):
                for verb, tail in (("GET", "finalization"), ("POST", "finalize")):
                    answer = await client.request(verb, f"/v1/conversations/{key}/{tail}")
                    problem(answer, 404, "conversation-not-found")
                    seen.add((answer.text, str(sorted(answer.headers.items()))))
            assert len(seen) == 1
        assert await traces(ground) == before
        await all_checks(home)


def reads_of(home: House) -> list[str]:
    """Return a list to which every read of the store is added: what is read, or how much."""
    calls: list[str] = []
    store: Any = home.site.store
    place: Any = store._rpc if isinstance(store, FirestoreStore) else store
    real = place.read

    async def read(what: Any, *arguments: Any) -> Any:
        calls.append(getattr(what, "__name__", None) or f"{len(what)} documents")
        return await real(what, *arguments)

    place.read = read
    return calls


async def test_a_foreign_conversation_costs_the_same_reads_as_none(ground: Ground) -> None:
    """The timing class: what is read does not depend on whether somebody else has it."""
    async with house(ground, Scripted(), running=False) as home:
        await prepared(home)
        calls = reads_of(home)
        costs = set()
        async with home.client("eve") as client:
            for key in (*STATES, "never"):
                calls.clear()
                await client.get(f"/v1/conversations/{key}/finalization")
                await client.post(f"/v1/conversations/{key}/finalize")
                costs.add(tuple(calls))
        assert len(costs) == 1
        assert all(costs)
