"""Each fault switch does what it says, as often as it says, and nothing once it is cleared."""

from __future__ import annotations

from typing import Any

import grpc  # type: ignore[import-untyped]
import httpx
import pytest
from google.api_core import exceptions
from google.cloud import tasks_v2

from listen_finalization.testing.cloud_tasks import Code, Fault, FaultError, FaultKind, Faults

from .at_hand import QUEUE, bench


async def test_a_refused_call_changes_nothing_and_the_count_ends_it() -> None:
    async with bench() as at:
        at.server.faults.set(Fault(FaultKind.REFUSE, count=2, code=Code.RESOURCE_EXHAUSTED))
        for _ in range(2):
            with pytest.raises(exceptions.ResourceExhausted):
                await at.create(name="t")
        await at.create(name="t")
        assert len(await at.receiver.arrived(1)) == 1
        assert (at.server.faults.active(), dict(at.server.faults.hits)) == (
            (),
            {FaultKind.REFUSE: 2},
        )


@pytest.mark.parametrize("code", Code)
async def test_every_status_can_be_answered(code: Code) -> None:
    async with bench() as at:
        at.server.faults.set(Fault(FaultKind.REFUSE, code=code))
        with pytest.raises(exceptions.GoogleAPICallError) as fault:
            await at.create()
        assert fault.value.grpc_status_code is grpc.StatusCode[code]


async def test_other_calls_are_refused_only_when_they_are_named() -> None:
    async with bench() as at:
        at.server.faults.set(Fault(FaultKind.REFUSE, methods=("GetQueue",)))
        await at.create()
        with pytest.raises(exceptions.ServiceUnavailable):
            await at.client.get_queue(name=QUEUE, retry=None)


async def test_a_forgotten_task_is_answered_ok_takes_its_name_and_never_arrives() -> None:
    async with bench() as at:
        at.server.faults.set(Fault(FaultKind.FORGET, count=1))
        lost = await at.create("/lost", "lost")
        await at.create("/kept", "kept")
        assert [one.path for one in await at.receiver.arrived(1)] == ["/kept"]
        with pytest.raises(exceptions.NotFound):
            await at.client.get_task(name=lost.name)
        with pytest.raises(exceptions.AlreadyExists):
            await at.create("/lost", "lost")


async def test_an_uncertain_answer_hides_a_task_that_is_kept() -> None:
    async with bench() as at:
        at.server.faults.set(Fault(FaultKind.UNCERTAIN, count=1))
        with pytest.raises(exceptions.DeadlineExceeded):
            await at.create(name="t")
        assert len(await at.receiver.arrived(1)) == 1


async def test_a_silent_answer_leaves_the_caller_to_its_own_deadline_and_keeps_the_task() -> None:
    async with bench() as at:
        at.server.faults.set(Fault(FaultKind.SILENT, count=1))
        with pytest.raises(exceptions.DeadlineExceeded):
            await at.client.create_task(parent=QUEUE, task=at.task(name="t"), timeout=0.2)
        assert len(await at.receiver.arrived(1)) == 1


async def test_a_doubled_attempt_arrives_twice_with_one_retry_count() -> None:
    async with bench() as at:
        at.server.faults.set(Fault(FaultKind.TWICE, count=1))
        await at.create("/first", "first")
        await at.receiver.arrived(2)
        await at.create("/second", "second")
        got = await at.receiver.arrived(3)
        told = [(one.path, one.service("taskretrycount")) for one in got]
        assert told == [("/first", "0"), ("/first", "0"), ("/second", "0")]


async def test_a_late_task_shows_its_schedule_and_arrives_after_it() -> None:
    async with bench() as at:
        at.server.faults.set(Fault(FaultKind.LATE, seconds=30, count=1))
        late = await at.create("/late", "late", schedule_time=at.moment(10))
        assert late.schedule_time == at.moment(10)
        at.advance(39.9)
        await at.create("/now", "now")
        await at.receiver.arrived(1)
        at.advance(0.1)
        assert [one.path for one in await at.receiver.arrived(2)] == ["/now", "/late"]


async def test_tasks_out_of_order_come_last_first() -> None:
    async with bench() as at:
        at.server.faults.set(Fault(FaultKind.UNORDERED))
        await at.client.pause_queue(name=QUEUE)
        for number in range(3):
            await at.create(f"/{number}")
            at.clock.advance(1)
        limited = tasks_v2.RateLimits(max_concurrent_dispatches=1)
        await at.client.update_queue(queue=tasks_v2.Queue(name=QUEUE, rate_limits=limited))
        await at.client.resume_queue(name=QUEUE)
        assert [one.path for one in await at.receiver.arrived(3)] == ["/2", "/1", "/0"]
        assert at.server.faults.hits == {FaultKind.UNORDERED: 3}


async def test_a_call_that_is_refused_anyway_uses_up_no_fault() -> None:
    async with bench() as at:
        await at.create(name="t", schedule_time=at.moment(60))
        at.server.faults.set(Fault(FaultKind.FORGET, count=1))
        with pytest.raises(exceptions.AlreadyExists):
            await at.create(name="t")
        assert [one.count for one in at.server.faults.active()] == [1]


def test_a_share_is_spread_evenly() -> None:
    faults = Faults()
    faults.set(Fault(FaultKind.REFUSE, share=0.1))
    hit = [faults.hit(FaultKind.REFUSE) is not None for _ in range(30)]
    assert [number for number, one in enumerate(hit, 1) if one] == [10, 20, 30]


def test_cleared_faults_hit_nothing() -> None:
    faults = Faults()
    for kind in (FaultKind.TWICE, FaultKind.FORGET, FaultKind.SILENT):
        faults.set(Fault(kind))
    faults.clear(FaultKind.TWICE)
    assert faults.hit(FaultKind.TWICE) is None
    assert [one.kind for one in faults.active()] == [FaultKind.FORGET, FaultKind.SILENT]
    faults.clear()
    assert faults.active() == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": FaultKind.REFUSE, "count": 0},
        {"kind": FaultKind.REFUSE, "share": 0.0},
        {"kind": FaultKind.REFUSE, "share": 1.1},
        {"kind": FaultKind.REFUSE, "methods": ()},
        {"kind": FaultKind.REFUSE, "methods": ("Nothing",)},
        {"kind": FaultKind.REFUSE, "seconds": 1.0},
        {"kind": FaultKind.TWICE, "code": Code.INTERNAL},
        {"kind": FaultKind.TWICE, "methods": ("GetTask",)},
        {"kind": FaultKind.LATE},
        {"kind": FaultKind.LATE, "seconds": -1.0},
        {"kind": FaultKind.LATE, "seconds": 31 * 86_400.0},
    ],
)
def test_a_switch_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(FaultError):
        Fault(**fields)


async def test_faults_are_switched_over_http() -> None:
    async with bench() as at, httpx.AsyncClient(base_url=at.server.control_url) as http:
        wanted = {"code": "ABORTED", "count": 3, "share": 0.5, "methods": ["GetTask"]}
        answer = await http.put("/faults/refuse", json=wanted)
        shown = {"kind": "refuse", **wanted}
        assert (answer.status_code, answer.json()) == (200, {"faults": [shown], "hits": {}})
        assert at.server.faults.active() == (
            Fault(FaultKind.REFUSE, 3, 0.5, Code.ABORTED, methods=("GetTask",)),
        )
        assert (await http.put("/faults/late", json={"seconds": 5})).status_code == 200
        assert (await http.put("/faults/twice")).status_code == 200
        assert len((await http.get("/faults")).json()["faults"]) == 3
        await http.delete("/faults/late")
        assert len(at.server.faults.active()) == 2
        assert (await http.delete("/faults")).json() == {"faults": [], "hits": {}}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "/faults/refuse", b'{"code": "OK"}', 400),
        ("PUT", "/faults/refuse", b'{"count": true}', 400),
        ("PUT", "/faults/refuse", b'{"count": 0}', 400),
        ("PUT", "/faults/refuse", b'{"other": 1}', 400),
        ("PUT", "/faults/refuse", b'{"code": []}', 400),
        ("PUT", "/faults/refuse", b"[]", 400),
        ("PUT", "/faults/refuse", b"{", 400),
        ("PUT", "/faults/refuse", b"\xff", 400),
        ("PUT", "/faults/unknown", b"{}", 404),
        ("PUT", "/faults", b"{}", 405),
        ("POST", "/faults", b"{}", 405),
        ("POST", "/certs", b"{}", 405),
        ("GET", "/", b"", 404),
        ("GET", "/certs/x", b"", 404),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused_and_changes_nothing(
    method: str, path: str, body: bytes, status: int
) -> None:
    async with bench() as at, httpx.AsyncClient(base_url=at.server.control_url) as http:
        answer = await http.request(method, path, content=body)
        assert answer.status_code == status
        assert "error" in answer.json()
        assert at.server.faults.active() == ()
