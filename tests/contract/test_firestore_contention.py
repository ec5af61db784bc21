"""Sixty-four admissions of one conversation at once, from eight processes' worth of stores."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import cycle, islice

import pytest

from listen_finalization.domain.codes import Status
from listen_finalization.domain.commands import Admit
from listen_finalization.domain.content import Segment
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.identity import job_id
from listen_finalization.errors import StoreBusyError

from .firestore_subject import FirestoreSubject

pytestmark = pytest.mark.xdist_group("firestore")

UID = "ada"
CONTENDERS = 64
STORES = 8
RUNS = 5


@pytest.fixture
async def stores(firestore: FirestoreSubject) -> AsyncIterator[list[FirestoreSubject]]:
    async with AsyncExitStack() as closing:
        made = [FirestoreSubject(firestore.project) for _ in range(STORES)]
        for one in made:
            closing.push_async_callback(one.close)
        yield made


async def _admitted(subject: FirestoreSubject, name: str) -> tuple[Decision, float]:
    """Admit as a caller does, who sends the same command again when the store is busy."""
    begun = time.monotonic()
    while True:
        try:
            answer = await subject.outbox.apply(Admit(UID, name))
        except StoreBusyError:
            continue
        assert isinstance(answer, Decision)
        return answer, time.monotonic() - begun


async def _contended(stores: list[FirestoreSubject], name: str) -> list[float]:
    """Let all contend and assert one admission, told to everybody; return their seconds."""
    said = Segment("s", "a", 0.0, 1.0, "words")
    await stores[0].conversations.append(UID, name, [said])
    contenders = islice(cycle(stores), CONTENDERS)
    told = await asyncio.gather(*(_admitted(one, name) for one in contenders))

    [first] = [answer for answer, _ in told if answer.changed]
    assert first.job is not None
    assert first.job.job_id == job_id(UID, name, 1)
    assert first.job.status is Status.QUEUED
    assert [answer.job for answer, _ in told] == [first.job] * CONTENDERS
    assert await stores[0].outbox.get(first.job.job_id) == first.job
    found = await stores[0].conversations.find(UID, name)
    assert found is not None
    named = (found.conversation.job_id, found.conversation.revision)
    assert named == (first.job.job_id, 1)
    return [seconds for _, seconds in told]


async def test_contenders_for_one_conversation_get_one_job_and_one_answer(
    stores: list[FirestoreSubject],
) -> None:
    await _contended(stores, "one")

    assert await stores[0].job_count() == 1


@pytest.mark.full
async def test_contention_again_and_again_with_its_median_time(
    stores: list[FirestoreSubject],
) -> None:
    seconds = [s for run in range(RUNS) for s in await _contended(stores, f"run-{run}")]

    assert await stores[0].job_count() == RUNS
    told = (statistics.median(seconds), max(seconds))
    print(
        f"\n{CONTENDERS} contenders, {RUNS} runs: median {told[0]:.2f} s, slowest {told[1]:.2f} s"
    )
