"""One command between the calls of another: both answers and all rows are those of some order.

The long form runs every start state, every pair of acts that would change it, every place between
two calls of the first one, and stores that know the job already as well as stores that do not.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest
from google.cloud.firestore_v1 import AsyncClient

from .interleaving import Bench, Case, cases

pytestmark = pytest.mark.xdist_group("firestore")

AT_ONCE = 8
"""Cases under way: they wait for the emulator, not for each other."""

SAMPLE = 53
"""Of so many cases the short form runs one; a prime, so that it meets all states and acts."""


@pytest.fixture
async def bench(firestore_host: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_host)
    client = AsyncClient(project=f"p-{secrets.token_hex(8)}")
    yield Bench(client)
    await client._firestore_api.transport.close()


async def _each(chosen: Sequence[Case], run: Callable[[Case], Awaitable[None]]) -> None:
    waiting = iter(chosen)

    async def work() -> None:
        for case in waiting:
            await run(case)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


async def test_a_command_between_the_calls_of_another_leaves_a_serial_outcome(
    bench: Bench,
) -> None:
    await _each(list(cases())[::SAMPLE], bench.interleave)


async def test_a_lost_answer_and_another_writer_behind_it_leave_one_effect_or_a_repeat(
    bench: Bench,
) -> None:
    await _each(list(cases())[:: 2 * SAMPLE], bench.lose)


@pytest.mark.full
@pytest.mark.timeout(2_400)
async def test_every_pair_of_commands_leaves_a_serial_outcome_at_every_place(bench: Bench) -> None:
    every = list(cases())
    assert len(every) > 8_000
    await _each(every, bench.interleave)


@pytest.mark.full
@pytest.mark.timeout(2_400)
async def test_every_pair_behind_a_lost_answer_leaves_one_effect_or_a_repeat(bench: Bench) -> None:
    await _each(list(cases()), bench.lose)
