"""The dispatcher of one machine: due order, a bounded number at once, no row that spins."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from listen_finalization.dispatch import embedded
from listen_finalization.dispatch.embedded import EmbeddedDispatcher
from listen_finalization.dispatch.processes import Election, ProcessRegistry
from listen_finalization.domain.commands import Admit, ClaimJob, Park, Postpone
from listen_finalization.domain.content import Segment
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.identity import task_name
from listen_finalization.domain.job import Instant, Job, seconds
from listen_finalization.errors import StoreBusyError, ValueRefusedError
from listen_finalization.finalizer import Delivery
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.outbox.sqlite import SqliteOutbox, SqliteStore
from listen_finalization.ports import DuePage, DueRow
from listen_finalization.settings import RUN_PATH
from listen_finalization.testing.workshop import EMBEDDED, Workshop

Answer = Callable[[str, int], Awaitable[httpx.Response]]


class Scene:
    """A dispatcher over a workshop; deliveries are answered by the workshop unless told."""

    def __init__(self, workshop: Workshop, directory: Path, **options: Any) -> None:
        self.workshop = workshop
        self.delivered: list[tuple[str, int]] = []
        self.requests: list[httpx.Request] = []
        self.at_once = self.most = 0
        self.answer: Answer = self.worked
        self.signals = Signals()
        self.registry = ProcessRegistry(directory / "processes")
        self.outlived = 0
        self.token: Callable[[], str] = lambda: "token"
        self.dispatcher = EmbeddedDispatcher(
            options.get("outbox", workshop.outbox),
            lambda: self.token(),
            self.registry,
            Election(directory / "dispatcher.lock"),
            self.signals,
            slots=options.get("slots", 4),
            data_version=options.get("data_version", workshop.store.data_version),
            outlived=lambda: self.outlived,
        )
        self.client = httpx.AsyncClient(
            transport=httpx.MockTransport(self._handle), base_url="https://worker.example"
        )

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        task = json.loads(request.content)
        self.requests.append(request)
        self.delivered.append((task["job_id"], task["dispatch_generation"]))
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            return await self.answer(task["job_id"], task["dispatch_generation"])
        finally:
            self.at_once -= 1

    async def worked(self, job_id: str, generation: int) -> httpx.Response:
        result = await self.workshop.finalizer.run(Delivery(job_id, generation))
        return httpx.Response(200, json={"status": result.kind, "code": result.code})

    async def until(self, true: Callable[[], bool], limit: float = 5.0) -> None:
        async with asyncio.timeout(limit):
            while not true():  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.005)

    async def settled(self, *jobs: Job, limit: float = 10.0) -> None:
        async with asyncio.timeout(limit):
            while not all([(await self.workshop.job(j)).terminal for j in jobs]):  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.005)


def answers(status: int, body: object) -> Answer:
    async def answer(_: str, __: int) -> httpx.Response:
        return httpx.Response(status, json=body)

    return answer


@asynccontextmanager
async def scene(directory: Path, *, running: bool = True, **options: Any) -> AsyncIterator[Scene]:
    async with Workshop(directory) as workshop:
        wrap = options.pop("wrap", None)
        if wrap is not None:
            options["outbox"] = wrap(workshop.store)
        made = Scene(workshop, directory, **options)
        if running:
            made.dispatcher.start(made.client)
        try:
            yield made
        finally:
            await made.dispatcher.stop()
            await made.dispatcher.landed()
            made.registry.close()


async def test_due_rows_are_delivered_oldest_first_with_the_task_of_a_queue(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, running=False, slots=1) as here:
        jobs = [await here.workshop.admitted(f"c{n}") for n in range(6)]
        here.dispatcher.start(here.client)
        await here.settled(*jobs)
        assert here.delivered == [(job.job_id, 1) for job in jobs]
    request = here.requests[0]
    assert (request.method, request.url.path) == ("POST", RUN_PATH)
    assert json.loads(request.content) == {"job_id": jobs[0].job_id, "dispatch_generation": 1}
    assert request.headers["authorization"] == "Bearer token"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["x-cloudtasks-taskname"] == task_name(jobs[0].job_id, 1)
    assert request.headers["x-cloudtasks-taskretrycount"] == "0"


@pytest.mark.parametrize("slots", [1, 3])
async def test_never_more_than_the_configured_number_run_at_once(
    slots: int, tmp_path: Path
) -> None:
    async with scene(tmp_path, running=False, slots=slots) as here:
        jobs = [await here.workshop.admitted(f"c{n}") for n in range(10)]

        async def slow(job_id: str, generation: int) -> httpx.Response:
            await asyncio.sleep(0.01)
            return await here.worked(job_id, generation)

        here.answer = slow
        here.dispatcher.start(here.client)
        await here.settled(*jobs)
        assert here.most == slots


async def test_a_slot_held_by_an_outlived_step_is_not_counted_on(tmp_path: Path) -> None:
    async with scene(tmp_path, running=False, slots=2) as here:
        here.outlived = 2
        job = await here.workshop.admitted()
        here.dispatcher.start(here.client)
        await asyncio.sleep(0.3)
        assert here.delivered == []
        here.outlived = 1
        await here.settled(job)
        assert here.most == 1


@pytest.mark.parametrize(
    "answer",
    [
        answers(401, {"status": "refused", "code": "expired"}),
        answers(400, {"status": "refused", "code": "body_invalid"}),
        answers(500, {"type": "/problems/internal_error", "status": 500}),
        answers(503, {"status": "unavailable", "code": "environment_store"}),
        answers(409, {"status": "busy", "code": "lease_held"}),
        answers(200, {"status": "ignored", "code": "stale_generation"}),
        answers(200, []),
        answers(200, None),
        answers(200, "canary"),
        answers(200, {"status": ["odd"], "code": {}}),
    ],
)
async def test_a_delivery_that_changed_nothing_has_its_row_moved_and_does_not_spin(
    answer: Answer, tmp_path: Path
) -> None:
    async with scene(tmp_path, running=False) as here:
        here.answer = answer
        job = await here.workshop.admitted()
        here.dispatcher.start(here.client)
        await here.until(lambda: bool(here.signals.count(Event.ROW_MOVED, "postpone")))
        await asyncio.sleep(0.3)
        left = await here.workshop.job(job)
        assert len(here.delivered) == 1
        assert (left.status, left.dispatch_generation, left.attempt_count) == ("queued", 1, 0)
        assert (left.reconcile_after_at or 0) - left.updated_at == seconds(embedded.POSTPONE)
        assert left.history == job.history


@pytest.mark.parametrize("where", ["token", "transport"])
async def test_a_fault_of_our_own_moves_the_row_too(where: str, tmp_path: Path) -> None:
    async def broken(_: str, __: int) -> httpx.Response:
        raise httpx.ConnectError("canary")

    def no_token() -> str:
        raise OSError("canary")

    async with scene(tmp_path, running=False) as here:
        here.answer = broken
        if where == "token":
            here.token = no_token
        await here.workshop.admitted()
        here.dispatcher.start(here.client)
        await here.until(lambda: bool(here.signals.count(Event.ROW_MOVED, "postpone")))
        assert here.signals.count(Event.DELIVERY_FAULT) == 1


async def test_a_moved_row_is_delivered_again_when_it_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "POSTPONE", 0.1)
    async with scene(tmp_path, running=False) as here:
        here.answer = answers(401, {"status": "refused", "code": "expired"})
        job = await here.workshop.admitted()
        here.dispatcher.start(here.client)
        await here.until(lambda: len(here.delivered) == 3)
        here.answer = here.worked
        await here.settled(job)


async def test_a_row_that_cannot_be_moved_is_set_aside_and_starves_nobody(
    tmp_path: Path,
) -> None:
    class Poisoned(SqliteOutbox):
        async def apply(self, command: Any) -> Any:
            if isinstance(command, Postpone | Park) and command.job_id == poison:
                raise ValueRefusedError
            return await super().apply(command)

    poison = ""
    async with scene(tmp_path, running=False, slots=1, wrap=Poisoned) as here:
        bad = await here.workshop.admitted("bad")
        good = await here.workshop.admitted("good")
        poison = bad.job_id

        async def answer(job_id: str, generation: int) -> httpx.Response:
            if job_id == poison:
                return httpx.Response(500, json={})
            return await here.worked(job_id, generation)

        here.answer = answer
        here.dispatcher.start(here.client)
        await here.settled(good)
        assert Counter(here.delivered)[(bad.job_id, 1)] == 1
        assert here.signals.count(Event.ROW_SET_ASIDE) == 1


async def test_a_store_that_takes_nothing_is_not_hammered(tmp_path: Path) -> None:
    class ReadOnly(SqliteOutbox):
        async def apply(self, command: Any) -> Any:
            raise StoreBusyError

        async def set_aside(self, *_: Any) -> bool:
            raise StoreBusyError

    async with scene(tmp_path, running=False, slots=2, wrap=ReadOnly) as here:
        here.answer = answers(503, {"status": "unavailable", "code": "environment_store"})
        for n in range(5):
            await here.workshop.admitted(f"c{n}")
        here.dispatcher.start(here.client)
        await asyncio.sleep(0.6)
        assert len(here.delivered) == 2


async def test_due_byok_rows_are_parked_and_never_delivered(tmp_path: Path) -> None:
    async with scene(tmp_path, running=False) as here:
        job = await here.workshop.admitted(byok=True, holds_keys=True)
        execute(tmp_path, "UPDATE conversation_finalization_jobs SET reconcile_after_at = 1")
        here.dispatcher.start(here.client)
        await here.until(lambda: bool(here.signals.count(Event.ROW_MOVED, "park")))
        assert (await here.workshop.job(job)).status == "blocked_byok"
        assert here.delivered == []


async def test_a_row_whose_conversation_was_marked_later_is_parked_by_its_answer(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, running=False) as here:
        job = await here.workshop.admitted()
        await here.workshop.spoken(text="with keys", byok=True)
        here.dispatcher.start(here.client)
        await here.until(lambda: bool(here.signals.count(Event.ROW_MOVED, "park")))
        left = await here.workshop.job(job)
        assert (left.status, left.requires_byok) == ("blocked_byok", True)
        assert len(here.delivered) == 1


async def test_a_row_of_an_unknown_status_is_set_aside(tmp_path: Path) -> None:
    async with scene(tmp_path, running=False) as here:
        await here.workshop.admitted("odd")
        execute(tmp_path, "UPDATE conversation_finalization_jobs SET status = 'paused'")
        good = await here.workshop.admitted("good")
        here.dispatcher.start(here.client)
        await here.settled(good)
        assert here.signals.count(Event.ROW_SET_ASIDE) == 1
        assert [job_id for job_id, _ in here.delivered] == [good.job_id]


def execute(directory: Path, statement: str) -> None:
    with sqlite3.connect(directory / "listen.db", timeout=10) as connection:
        connection.execute(statement)
    connection.close()


async def test_a_dead_process_lease_is_taken_first_and_a_living_one_never(tmp_path: Path) -> None:
    async with scene(tmp_path, running=False, slots=1) as here:
        living, dead = (
            ProcessRegistry(tmp_path / "processes"),
            ProcessRegistry(tmp_path / "processes"),
        )
        held = [await here.workshop.admitted(name) for name in ("of-living", "of-dead")]
        for job, process in zip(held, (living, dead), strict=True):
            claim = ClaimJob(job.job_id, 1, process.new_claim_id())
            await here.workshop.outbox.apply(claim)
        others = [await here.workshop.admitted(f"c{n}") for n in range(3)]
        dead.close()
        here.workshop.finalizer._liveness = here.registry
        here.dispatcher.start(here.client)
        await here.settled(held[1], *others)
        assert here.delivered[0] == (held[1].job_id, 1)
        assert held[0].job_id not in {job_id for job_id, _ in here.delivered}
        assert len(here.delivered) == 4
        living.close()


async def test_looking_for_dead_owners_again_and_again_queues_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "CHECK_LIVES", 0.02)
    monkeypatch.setattr(embedded, "POLL", 0.01)
    async with scene(tmp_path, running=False, slots=1) as here:
        dead = ProcessRegistry(tmp_path / "processes")
        for name in ("c0", "c1", "c2"):
            job = await here.workshop.admitted(name)
            await here.workshop.outbox.apply(ClaimJob(job.job_id, 1, dead.new_claim_id()))
        dead.close()
        go = asyncio.Event()

        async def held(job_id: str, generation: int) -> httpx.Response:
            await go.wait()
            return httpx.Response(200, json={"status": "lost", "code": None})

        here.answer = held
        here.dispatcher.start(here.client)
        await asyncio.sleep(0.3)
        assert len(here.delivered) == 1
        assert len(here.dispatcher._backlog) == 2
        go.set()


async def test_a_start_moves_no_generation(tmp_path: Path) -> None:
    async with scene(tmp_path, running=False) as here:
        job = await here.workshop.admitted()
        here.answer = answers(503, {"status": "unavailable", "code": "environment_store"})
        for _ in range(3):
            here.dispatcher.start(here.client)
            await asyncio.sleep(0.05)
            await here.dispatcher.stop()
            await here.dispatcher.landed()
        left = await here.workshop.job(job)
        assert (left.dispatch_generation, left.handovers) == (1, 1)
        assert left.dispatched_at == job.dispatched_at


async def test_another_process_commit_wakes_within_half_a_second(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        await asyncio.sleep(0.1)
        other = SqliteStore(tmp_path / "listen.db", EMBEDDED)
        waits = []
        for n in range(3):
            job = await _admitted_by(other, f"c{n}")
            begun = time.monotonic()
            await here.until(lambda job=job: (job, 1) in here.delivered)  # type: ignore[misc]
            waits.append(time.monotonic() - begun)
        other.close()
        assert max(waits) < 1.0  # 0.25 s between two looks; the rest is for a busy machine
        print(f"woken after {', '.join(f'{wait:.3f}' for wait in waits)} s")


async def _admitted_by(store: SqliteStore, key: str) -> str:
    await store.conversations.append("ada", key, [Segment("s", "Ada", 0.0, 1.0, "words")])
    answer = await store.outbox.apply(Admit("ada", key))
    assert isinstance(answer, Decision) and answer.job is not None
    return answer.job.job_id


class Lookless(SqliteOutbox):
    """An outbox that finds nothing due once `blind`: what is delivered then was handed over."""

    blind = False

    async def due(self, limit: int, *, after: DueRow | None = None) -> DuePage:
        page = await super().due(limit, after=after)
        return replace(page, rows=()) if self.blind else page


async def test_a_handed_over_job_is_delivered_without_a_look_where_nothing_waits(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, wrap=Lookless) as here:
        await here.until(lambda: here.dispatcher.leads and here.dispatcher._at_rest)
        here.dispatcher._outbox.blind = True  # type: ignore[attr-defined]
        job = await here.workshop.admitted()
        await here.dispatcher.hand_over(job)
        await here.settled(job)
        assert here.delivered == [(job.job_id, 1)]


async def test_a_handed_over_job_goes_behind_those_that_wait(tmp_path: Path) -> None:
    async with scene(tmp_path, slots=1) as here:
        gate = asyncio.Event()

        async def gated(job_id: str, generation: int) -> httpx.Response:
            await gate.wait()
            return await here.worked(job_id, generation)

        here.answer = gated
        await here.until(lambda: here.dispatcher._at_rest)
        jobs = []
        for n in range(4):
            jobs.append(await here.workshop.admitted(f"c{n}"))
            await here.dispatcher.hand_over(jobs[-1])
        await here.until(lambda: len(here.delivered) == 1)
        gate.set()
        await here.settled(*jobs)
        assert here.delivered == [(job.job_id, 1) for job in jobs]
        assert here.most == 1


@pytest.mark.parametrize(
    ("changes", "delay", "asked"),
    [
        ({"reconcile_after_at": "later"}, 0, False),
        ({"requires_byok": True}, 0, False),
        ({}, 1, False),
        ({}, 0, True),
    ],
    ids=["not due", "keys", "delayed", "a look was asked for"],
)
async def test_what_may_not_be_delivered_at_once_is_left_to_a_look(
    changes: dict[str, Any], delay: int, asked: bool, tmp_path: Path
) -> None:
    async with scene(tmp_path, wrap=Lookless) as here:
        await here.until(lambda: here.dispatcher._at_rest)
        here.dispatcher._outbox.blind = True  # type: ignore[attr-defined]
        job = await here.workshop.admitted()
        if "reconcile_after_at" in changes:
            changes = {"reconcile_after_at": Instant(job.updated_at + 1)}
        if asked:
            here.dispatcher.wake()
        await here.dispatcher.hand_over(replace(job, **changes), delay=delay)
        assert here.dispatcher._in_flight == {}
        assert here.delivered == []


async def test_one_process_leads_and_the_other_follows_without_spinning(tmp_path: Path) -> None:
    async with scene(tmp_path) as leader:
        await leader.until(lambda: leader.dispatcher.leads)
        looks = Counter[str]()

        class Looking(Election):
            def campaign(self) -> bool:
                looks["campaign"] += 1
                return super().campaign()

        follower = Scene(leader.workshop, tmp_path)
        follower.dispatcher._election = Looking(tmp_path / "dispatcher.lock")
        follower.dispatcher.start(follower.client)
        job = await leader.workshop.admitted()
        await follower.dispatcher.hand_over(job)
        await leader.settled(job)
        await asyncio.sleep(0.3)
        assert [follower.dispatcher.leads, follower.delivered] == [False, []]
        assert looks["campaign"] <= 3
        await leader.dispatcher.stop()
        second = await leader.workshop.admitted("c2")
        await follower.settled(second)
        assert follower.dispatcher.leads
        await follower.dispatcher.stop()
        follower.registry.close()


@pytest.mark.parametrize("error", [StoreBusyError, RuntimeError, OSError])
async def test_a_failed_look_is_made_again_without_any_news(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "CHECK_LIVES", 0.05)

    class Once(SqliteOutbox):
        failed = False

        async def due(self, limit: int, **options: Any) -> Any:
            if not Once.failed:
                Once.failed = True
                raise error
            return await super().due(limit, **options)

    async with scene(tmp_path, running=False, wrap=Once, data_version=lambda: 7) as here:
        job = await here.workshop.admitted()
        here.dispatcher.start(here.client)
        await here.settled(job)
        assert here.signals.count(Event.ROUND_FAILED) == 1


async def test_what_is_under_way_at_a_stop_lands_and_leaves_its_row_to_the_next_process(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, running=False) as here:
        go = asyncio.Event()

        async def released(_: str, __: int) -> httpx.Response:
            await go.wait()
            return httpx.Response(503, json={"status": "unavailable", "code": "shutdown"})

        here.answer = released
        job = await here.workshop.admitted()
        here.dispatcher.start(here.client)
        await here.until(lambda: bool(here.delivered))
        await here.dispatcher.stop()
        go.set()
        await here.dispatcher.landed()
        assert await here.workshop.job(job) == job
