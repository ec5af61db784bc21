"""A user's destinations: at most 32, each with a secret that is shown once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from listen_finalization.errors import ListenFinalizationError
from listen_finalization.processing.destinations import (
    KIND,
    Destinations,
    TooManyDestinationsError,
)
from listen_finalization.processing.signing import parse_secret
from listen_finalization.testing.workshop import Workshop

URL = "https://receiver.example/hook"


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncIterator[Workshop]:
    async with Workshop(tmp_path) as made:
        yield made


@pytest.fixture
def destinations(workshop: Workshop) -> Destinations:
    return workshop.destinations


async def test_a_destination_is_stored_with_a_secret_of_its_own(
    destinations: Destinations,
) -> None:
    first = await destinations.add("ada", "a", URL)
    second = await destinations.add("ada", "b", URL)
    found = await destinations.of("ada")
    assert [(d.id, d.url, d.enabled) for d in found] == [("a", URL, True), ("b", URL, True)]
    assert [d.secret for d in found] == [parse_secret(first), parse_secret(second)]
    assert first != second
    assert URL not in repr(found) and first not in repr(found)


async def test_a_users_destinations_are_nobody_elses(destinations: Destinations) -> None:
    for uid in ("ada", "ad", "ada.", "adab", "b"):
        await destinations.add(uid, f"of-{uid.rstrip('.')}", URL)
    assert [d.id for d in await destinations.of("ada")] == ["of-ada"]


async def test_adding_again_replaces_address_and_secret(destinations: Destinations) -> None:
    first = await destinations.add("ada", "a", URL)
    second = await destinations.add("ada", "a", URL + "/2")
    (found,) = await destinations.of("ada")
    assert (found.url, found.secret) == (URL + "/2", parse_secret(second))
    assert first != second


async def test_the_thirty_third_is_refused_and_a_replacement_is_not(
    destinations: Destinations,
) -> None:
    for number in range(32):
        await destinations.add("ada", f"d{number:02}", URL)
    with pytest.raises(TooManyDestinationsError):
        await destinations.add("ada", "one-more", URL)
    await destinations.add("ada", "d07", URL)
    assert await destinations.remove("ada", "d00")
    await destinations.add("ada", "one-more", URL)
    assert len(await destinations.of("ada")) == 32


async def test_removing_tells_whether_there_was_one(destinations: Destinations) -> None:
    await destinations.add("ada", "a", URL)
    assert [await destinations.remove("ada", "a") for _ in range(2)] == [True, False]
    assert await destinations.of("ada") == ()


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("", URL),
        ("a/b", URL),
        ("a b", URL),
        ("x" * 65, URL),
        ("a", "ftp://receiver.example/"),
        ("a", "https://10.0.0.1/"),
        ("a", "https://user:canary@receiver.example/"),
    ],
)
async def test_a_bad_name_or_address_is_refused_and_nothing_stored(
    name: str, url: str, destinations: Destinations
) -> None:
    with pytest.raises(ListenFinalizationError) as caught:
        await destinations.add("ada", name, url)
    assert "canary" not in str(caught.value)
    assert await destinations.of("ada") == ()


@pytest.mark.parametrize(
    "damage",
    [
        {},
        {"url": 5, "secret": "whsec_x", "enabled": True},
        {"url": URL, "secret": "short", "enabled": True},
        {"url": URL, "secret": None, "enabled": True},
        {"url": "file:///etc/passwd", "secret": "whsec_" + "A" * 44, "enabled": True},
    ],
)
async def test_a_damaged_destination_is_left_out_and_keeps_no_other_from_its_deliveries(
    damage: dict[str, Any], workshop: Workshop
) -> None:
    await workshop.destinations.add("ada", "b", URL)
    await workshop.store.records.put_if(KIND, "ada/a", damage, version=0)
    assert [d.id for d in await workshop.destinations.of("ada")] == ["b"]


async def test_a_disabled_destination_gets_nothing(workshop: Workshop) -> None:
    await workshop.destinations.add("ada", "a", URL)
    held = await workshop.store.records.get(KIND, "ada/a")
    assert held is not None
    value = {**held.value, "enabled": False}
    await workshop.store.records.put_if(KIND, "ada/a", value, version=held.version)
    assert await workshop.destinations.of("ada") == ()
