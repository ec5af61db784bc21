"""Slots: a step that outlives its run keeps its thread, and no more threads than slots exist."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Callable

import pytest

from listen_finalization.processing.slots import Slot, Slots

SIZE = 3


def taken(slots: Slots) -> Slot:
    slot = slots.take()
    assert slot is not None
    return slot


def step_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "step"}


@pytest.fixture
async def slots() -> AsyncIterator[Slots]:
    made = Slots(SIZE)
    yield made
    made.close()


async def until(true: Callable[[], bool], limit: float = 5.0) -> None:
    async with asyncio.timeout(limit):
        while not true():  # noqa: ASYNC110 - seen from outside
            await asyncio.sleep(0.002)


async def test_a_step_runs_off_the_event_loop_and_its_value_comes_back(slots: Slots) -> None:
    slot = taken(slots)
    ident = await slot.call(threading.get_ident)
    assert ident != threading.get_ident()
    assert await slot.call(max, 3, 5) == 5
    assert await slot.call(threading.get_ident) == ident


async def test_no_slot_is_given_where_all_are_held(slots: Slots) -> None:
    held = [taken(slots) for _ in range(SIZE)]
    assert slots.take() is None
    held[0].give_back()
    assert slots.free == 1
    assert slots.take() is held[0]


async def test_a_step_that_outlives_its_run_keeps_the_slot_until_it_returns(
    slots: Slots,
) -> None:
    go = threading.Event()
    slot = taken(slots)
    waiting = asyncio.ensure_future(slot.call(go.wait, 10))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    slot.give_back()
    assert (slots.free, slots.outlived, slots.exhausted) == (SIZE - 1, 1, False)
    go.set()
    await until(lambda: slots.free == SIZE)
    assert (slots.outlived, slot.outlived) == (0, False)
    again = taken(slots)
    assert await again.call(max, 1, 2) == 2


async def test_slots_are_exhausted_when_every_one_is_held_by_an_outlived_step(
    slots: Slots,
) -> None:
    go = threading.Event()
    for _ in range(SIZE):
        assert not slots.exhausted
        slot = taken(slots)
        waiting = asyncio.ensure_future(slot.call(go.wait, 10))
        await asyncio.sleep(0.01)
        waiting.cancel()
        slot.give_back()
    assert slots.exhausted
    assert slots.take() is None
    go.set()
    await until(lambda: slots.free == SIZE)
    assert not slots.exhausted


async def test_a_busy_slot_is_not_exhausted(slots: Slots) -> None:
    for _ in range(SIZE):
        taken(slots)
    assert not slots.exhausted


async def test_a_hundred_runs_use_no_more_threads_than_slots_and_close_ends_them() -> None:
    before = step_threads()
    slots = Slots(SIZE)
    for _ in range(100):
        held = [taken(slots) for _ in range(SIZE)]
        await asyncio.gather(*(slot.call(int) for slot in held))
        for slot in held:
            slot.give_back()
        assert slots.free == SIZE
    assert len(step_threads() - before) == SIZE
    slots.close()
    await until(lambda: step_threads() <= before)


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (ValueError("canary"), ValueError),
        (SystemExit(3), RuntimeError),
        (KeyboardInterrupt(), RuntimeError),
        (GeneratorExit(), RuntimeError),
        (StopIteration(5), RuntimeError),
        (asyncio.CancelledError(), RuntimeError),
        (BaseExceptionGroup("canary", [SystemExit()]), RuntimeError),
        (ExceptionGroup("canary", [ValueError()]), ExceptionGroup),
    ],
)
async def test_whatever_a_step_raises_reaches_the_run_and_the_thread_lives(
    error: BaseException, seen: type[Exception], slots: Slots
) -> None:
    def step() -> None:
        raise error

    slot = taken(slots)
    async with asyncio.timeout(5):
        with pytest.raises(seen):
            await slot.call(step)
    assert await slot.call(max, 1, 2) == 2


async def test_an_idle_thread_keeps_nothing_of_its_last_step(slots: Slots) -> None:
    class Keys(dict[str, str]):
        pass

    slot = taken(slots)
    keys = Keys(openai="canary")
    gone = weakref.ref(keys)
    await slot.call(len, keys)
    del keys
    gc.collect()
    assert gone() is None


async def test_a_step_that_ends_after_the_loop_frees_nobody_and_raises_nothing() -> None:
    slots = Slots(1)
    go = threading.Event()

    async def left_behind() -> None:
        waiting = asyncio.ensure_future(taken(slots).call(go.wait, 10))
        await asyncio.sleep(0.01)
        waiting.cancel()

    await asyncio.to_thread(asyncio.run, left_behind())
    go.set()
    slots.close()
