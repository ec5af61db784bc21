"""The least offset of two clocks, and when it matters."""

from __future__ import annotations

from types import SimpleNamespace

import httpx
import pytest

from listen_finalization.operate.facts import ServerTime
from listen_finalization.operate.google import Endpoints, Google, default_account
from listen_finalization.operate.probes import around
from listen_finalization.operate.probes.reach import Reach

from .live_project import LiveProject


@pytest.mark.parametrize(
    ("earliest", "latest", "before", "after", "offset"),
    [
        (100.0, 101.0, 99.5, 100.5, 0.0),
        (100.0, 101.0, 103.0, 109.0, 2.0),
        (100.0, 101.0, 90.0, 97.0, -3.0),
        (100.0, 100.0, 40.0, 160.0, 0.0),
        (100.0, 101.0, 101.0, 102.0, 0.0),
    ],
)
def test_only_what_the_way_cannot_explain_is_an_offset(
    earliest: float, latest: float, before: float, after: float, offset: float
) -> None:
    assert ServerTime(earliest, latest, before=before, after=after).offset == offset


async def test_a_slow_answer_is_no_offset(
    live: LiveProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = iter([946_684_700.0, 946_684_900.0])
    monkeypatch.setattr(around, "time", SimpleNamespace(time=readings.__next__))
    live.rest.date = "Sat, 01 Jan 2000 00:00:00 GMT"
    async with httpx.AsyncClient() as client:
        google = Google(client, default_account, Endpoints())
        found = await around.look_at_clock(
            Reach(live.deployed, live.settings, client, google, deadline=20)
        )
    assert found == ServerTime(
        946_684_800.0, 946_684_801.0, before=946_684_700.0, after=946_684_900.0
    )


@pytest.mark.parametrize(
    ("headers", "earliest", "latest"),
    [
        ({"age": "40"}, 946_684_840.0, 946_684_842.0),
        ({}, 946_684_800.0, 946_684_801.0),
    ],
)
def test_what_a_cache_kept_is_as_old_as_it_says(
    headers: dict[str, str], earliest: float, latest: float
) -> None:
    dated = httpx.Headers({"date": "Sat, 01 Jan 2000 00:00:00 GMT", **headers})
    assert around._told(dated, 1.0, lambda: 2.0) == ServerTime(
        earliest, latest, before=1.0, after=2.0
    )
