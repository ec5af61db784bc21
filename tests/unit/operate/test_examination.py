"""How the probes of one examination run side by side."""

from __future__ import annotations

import asyncio

import pytest

from listen_finalization.operate import examination
from listen_finalization.operate.facts import Missing
from listen_finalization.operate.probes.reach import Reach

from .live_project import LiveProject


async def test_no_more_probes_look_at_once_than_agreed_and_each_is_told_of(
    live: LiveProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = most = 0
    free = asyncio.Event()

    async def look(_: Reach) -> Missing:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == examination.AT_ONCE:
            # Whoever else could begin has its turns before anybody ends.
            for _turn in range(100):
                await asyncio.sleep(0)
            free.set()
        await free.wait()
        now -= 1
        return Missing()

    probes = dict.fromkeys(examination._PROBES, look)
    monkeypatch.setattr(examination, "_PROBES", probes)
    told: list[str] = []
    live.env["LISTEN_FINALIZATION_RUN_LOCK_URL"] = "redis://127.0.0.1:1/0"
    await examination.examine(live.deployed, live.settings, deadline=20, noted=told.append)
    assert most == examination.AT_ONCE < len(probes)
    assert sorted(told) == sorted(probes)
