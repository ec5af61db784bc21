"""The tap passes calls, answers and errors on, and notes what is asked."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest
from google.api_core.exceptions import AlreadyExists
from google.cloud.firestore_v1 import AsyncClient, FieldFilter

from .index_file import IndexFile
from .index_rules import Shape
from .tap import Tap

pytestmark = pytest.mark.xdist_group("firestore")


@pytest.fixture
async def tap(firestore_emulator_host: str) -> AsyncIterator[Tap]:
    async with Tap(firestore_emulator_host) as made:
        yield made


@pytest.fixture
async def client(tap: Tap, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AsyncClient]:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", tap.address)
    made = AsyncClient(project=f"p-{secrets.token_hex(8)}")
    yield made
    await made._firestore_api.transport.close()


async def test_what_is_written_through_the_tap_is_read_through_it(client: AsyncClient) -> None:
    place = client.document("jobs", "one")
    await place.create({"status": "queued", "said": "x" * 1_000_000})

    assert (await place.get()).to_dict() == {"status": "queued", "said": "x" * 1_000_000}
    with pytest.raises(AlreadyExists):
        await place.create({})


async def test_query_without_an_index_is_told(client: AsyncClient, tap: Tap) -> None:
    jobs = client.collection("conversation_finalization_jobs")
    asked = jobs.where(filter=FieldFilter("uid", "==", "ada"))

    assert [found async for found in asked.stream()] == []
    assert list(tap.shapes) == [Shape(jobs.id, equal=frozenset({"uid"}))]
    with pytest.raises(AssertionError, match="no index of deploy"):
        tap.check(IndexFile.shipped())


async def test_count_is_seen(client: AsyncClient, tap: Tap) -> None:
    jobs = client.collection("jobs").where(filter=FieldFilter("status", "==", "queued"))
    [[told]] = await jobs.count().get()  # type: ignore[call-arg]

    assert told.value == 0
    assert list(tap.shapes) == [Shape("jobs", equal=frozenset({"status"}), counted=True)]
    tap.check(IndexFile.shipped())


async def test_query_that_the_rules_do_not_know_is_told(client: AsyncClient, tap: Tap) -> None:
    [[told]] = await client.collection("jobs").sum("attempt_count").get()

    assert told.value == 0
    with pytest.raises(AssertionError):
        tap.check(IndexFile.shipped())
