"""`/livez` and `/readyz` name the part that is not ready, and nothing else."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from desk import CANARY, desk

from listen_finalization.errors import StoreBusyError
from listen_finalization.http.health import HealthRoutes, NotReady, slots_part, store_part
from listen_finalization.processing.slots import Slots


async def good() -> NotReady | None:
    return None


async def test_ready_is_200_with_each_part(tmp_path: Path) -> None:
    async with desk(tmp_path, parts={"store": good}) as made, made.client(None) as client:
        answer = await client.get("/readyz")
        assert answer.status_code == 200
        assert answer.json() == {"ready": True, "parts": {"store": {"ok": True, "reason": None}}}
        assert (await client.get("/livez")).json() == {"live": True}


async def test_a_part_that_faults_or_hangs_is_red_and_says_no_more(tmp_path: Path) -> None:
    async def faulty() -> NotReady | None:
        raise RuntimeError(CANARY)

    async def hanging() -> NotReady | None:
        await asyncio.sleep(60)
        return None

    parts = {"keys": good, "store": faulty, "slots": hanging}
    async with desk(tmp_path, parts=parts) as made, made.client(None) as client:
        answer = await asyncio.wait_for(client.get("/readyz"), 10)
        assert answer.status_code == 503
        assert answer.json()["parts"] == {
            "keys": {"ok": True, "reason": None},
            "store": {"ok": False, "reason": "fault"},
            "slots": {"ok": False, "reason": "timeout"},
        }
        assert (await client.get("/livez")).status_code == 200
    assert HealthRoutes({})


async def test_the_store_is_red_when_it_is_broken_or_cannot_be_read(tmp_path: Path) -> None:
    async with desk(tmp_path) as made:
        broken = False
        part = store_part(made.outbox, lambda: broken)
        assert await part() is None
        broken = True
        assert await part() is NotReady.STORE_BROKEN
        broken = False
        made.store.close()
        assert await part() is NotReady.STORE_UNAVAILABLE


async def test_a_file_that_was_taken_away_turns_the_store_red(tmp_path: Path) -> None:
    async with desk(tmp_path) as made:
        part = store_part(made.outbox, lambda: made.store.broken)
        assert await part() is None
        (tmp_path / "listen.db").unlink()
        assert await part() is NotReady.STORE_BROKEN
    assert StoreBusyError()


async def test_slots_are_red_when_all_are_held_by_steps_that_outlived_their_runs() -> None:
    slots = Slots(1)
    part = slots_part(slots)
    assert await part() is None
    slot, released = slots.take(), threading.Event()
    assert slot is not None
    call = asyncio.ensure_future(slot.call(released.wait))
    await asyncio.sleep(0.01)
    assert await part() is None
    slot.give_back()
    assert await part() is NotReady.SLOTS_EXHAUSTED
    released.set()
    await call
    while slots.exhausted:  # noqa: ASYNC110 - the slot's thread says when
        await asyncio.sleep(0.001)
    assert await part() is None
    slots.close()
