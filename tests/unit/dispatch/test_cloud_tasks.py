"""The Cloud Tasks dispatcher over real gRPC: what it asks for, and every answer it can get."""

from __future__ import annotations

import datetime as dt
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from google.cloud import tasks_v2

from cloud_tasks.at_hand import LOCATION, QUEUE, Bench, bench
from listen_finalization.auth.policy import PolicyName, TokenPolicy
from listen_finalization.auth.sources import StaticKeySource
from listen_finalization.dispatch import cloud_tasks
from listen_finalization.dispatch.cloud_tasks import (
    OUTCOMES,
    CloudTasksDispatcher,
    TaskOutcome,
    open_client,
)
from listen_finalization.domain.codes import Status
from listen_finalization.domain.identity import job_id
from listen_finalization.domain.job import Instant, Job, seconds
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.testing.canary import KeptLog
from listen_finalization.testing.cloud_tasks import Code, Fault, FaultKind

AUDIENCE = "https://worker.example/v1/conversation-finalization-jobs/run"
INVOKER = "invoker@demo.iam.gserviceaccount.com"
AT = Instant(1_760_000_000_000_000)
TOLD_AS_ERROR = frozenset(
    {
        *(Code.PERMISSION_DENIED, Code.UNAUTHENTICATED, Code.NOT_FOUND, Code.FAILED_PRECONDITION),
        *(Code.INVALID_ARGUMENT, Code.OUT_OF_RANGE, Code.UNIMPLEMENTED),
    }
)


def a_job(number: int = 1, generation: int = 1) -> Job:
    return Job(
        job_id=job_id("ada", f"c{number}", 1),
        uid="ada",
        conversation_id=f"c{number}",
        finalization_revision=1,
        status=Status.QUEUED,
        requires_byok=False,
        force_process=False,
        created_at=AT,
        updated_at=AT,
        dispatched_at=AT,
        dispatch_generation=generation,
        reconcile_after_at=AT,
    )


class Desk(Bench):
    """The bench of the server, with a dispatcher in front of it."""

    signals: Signals
    dispatcher: CloudTasksDispatcher

    def told(self) -> dict[tuple[Event, str], int]:
        return dict(self.signals.counts)

    async def tasks(self) -> list[tasks_v2.Task]:
        request = tasks_v2.ListTasksRequest(parent=QUEUE, response_view=tasks_v2.Task.View.FULL)
        return [task async for task in await self.client.list_tasks(request)]


@asynccontextmanager
async def desk(*, paused: bool = False, **changes: Any) -> AsyncIterator[Desk]:
    async with bench() as at:
        made = Desk(at.server, at.client, at.clock)
        made.receiver = at.receiver
        made.signals = Signals()
        made.dispatcher = await dispatcher(made, **changes)
        if paused:
            await at.client.pause_queue(name=QUEUE)
        yield made
        await made.dispatcher.close()


async def dispatcher(at: Desk, **changes: Any) -> CloudTasksDispatcher:
    given: dict[str, Any] = {
        "queue": QUEUE,
        "handler_url": at.receiver.url + "/run",
        "audience": AUDIENCE,
        "invoker": INVOKER,
        "deadline_seconds": 1500,
        "signals": at.signals,
        "now": at.clock.monotonic,
        **changes,
    }
    return CloudTasksDispatcher(await open_client(at.server.address), given.pop("queue"), **given)


async def test_the_task_names_body_deadline_audience_and_account_of_one_hand_over() -> None:
    async with desk(paused=True) as at:
        assert await at.dispatcher.hand_over(a_job(generation=3)) is True
        (task,) = await at.tasks()
        assert task == tasks_v2.Task(
            name=f"{QUEUE}/tasks/{a_job().job_id}-3",
            view=tasks_v2.Task.View.FULL,
            http_request=tasks_v2.HttpRequest(
                url=at.receiver.url + "/run",
                http_method=tasks_v2.HttpMethod.POST,
                headers={"Content-Type": "application/json"},
                body=task.http_request.body,
                oidc_token=tasks_v2.OidcToken(service_account_email=INVOKER, audience=AUDIENCE),
            ),
            schedule_time=at.moment(),
            create_time=at.moment(),
            dispatch_deadline=dt.timedelta(seconds=1500),
        )
        body = json.loads(task.http_request.body)
        assert body == {"job_id": a_job().job_id, "dispatch_generation": 3}
        assert at.told() == {}


async def test_a_worker_receives_what_was_asked_for_with_a_good_token() -> None:
    from cloud_tasks.at_hand import signing_key
    from listen_finalization.auth.issuer import LocalIssuer
    from listen_finalization.auth.outcome import Verified
    from listen_finalization.auth.verifier import TokenVerifier

    async with desk() as at:
        await at.dispatcher.hand_over(a_job())
        (got,) = await at.receiver.arrived(1)
        assert (got.method, got.path) == ("POST", "/run")
        assert json.loads(got.body) == {"job_id": a_job().job_id, "dispatch_generation": 1}
        assert got.headers["content-type"] == "application/json"
        assert got.service("taskname") == f"{a_job().job_id}-1"
        key = signing_key()
        keys = StaticKeySource({LocalIssuer(key).kid: key.public_key()})
        policy = TokenPolicy.google(PolicyName.TASKS, AUDIENCE, email=INVOKER)
        judged = await TokenVerifier(policy, keys).verify([got.headers["authorization"]])
        assert isinstance(judged, Verified)


async def test_the_worker_is_given_up_at_the_deadline_that_was_asked_for() -> None:
    async with desk(deadline_seconds=1500) as at:
        at.receiver.hold.clear()
        await at.dispatcher.hand_over(a_job())
        await at.receiver.arrived(1)
        at.advance(1499)
        assert [task.dispatch_count for task in await at.tasks()] == [1]
        assert at.receiver.cut == 0
        at.advance(1)
        while not at.receiver.cut:
            await at.tasks()


async def test_two_generations_of_a_job_stand_side_by_side() -> None:
    async with desk(paused=True) as at:
        job = a_job()
        assert await at.dispatcher.hand_over(job)
        assert await at.dispatcher.hand_over(replace(job, dispatch_generation=2))
        names = [task.name.rpartition("/")[2] for task in await at.tasks()]
        assert names == [f"{job.job_id}-1", f"{job.job_id}-2"]
        assert at.told() == {}


async def test_the_names_of_many_jobs_are_spread_and_never_sequential() -> None:
    async with desk(paused=True) as at:
        for number in range(64):
            assert await at.dispatcher.hand_over(a_job(number))
        names = [task.name.rpartition("/")[2] for task in await at.tasks()]
        assert len(set(names)) == 64
        # Of 64 even draws of 16 first digits, 12 or fewer different ones are one in a million.
        assert len({name[0] for name in names}) > 12
        created = [f"{a_job(number).job_id}-1" for number in range(64)]
        assert created != sorted(created)


@pytest.mark.parametrize(
    ("delay", "ahead"),
    [
        (0, 0.0),
        (-seconds(5), 0.0),
        (seconds(1.5), 1.5),
        (seconds(3600), 3600.0),
        (seconds(30 * 86_400), 30 * 86_400 - 3600.0),
        (seconds(400 * 86_400), 30 * 86_400 - 3600.0),
    ],
)
async def test_a_delay_of_any_size_is_scheduled_within_what_the_queue_takes(
    delay: int, ahead: float
) -> None:
    async with desk(paused=True) as at:
        assert await at.dispatcher.hand_over(a_job(), delay=delay)
        assert [task.schedule_time for task in await at.tasks()] == [at.moment(ahead)]


async def test_a_clock_that_runs_behind_the_queue_s_asks_for_no_time_that_it_refuses() -> None:
    async with desk(paused=True, now=lambda: 1_000_000.0) as at:
        assert await at.dispatcher.hand_over(a_job(), delay=seconds(60))
        assert [task.schedule_time for task in await at.tasks()] == [at.moment()]


async def test_a_task_that_exists_is_no_failure_and_is_told() -> None:
    async with desk(paused=True) as at:
        assert await at.dispatcher.hand_over(a_job())
        assert await at.dispatcher.hand_over(a_job()) is True
        assert len(await at.tasks()) == 1
        assert at.told() == {(Event.TASK_NOT_CREATED, TaskOutcome.EXISTS): 1}


async def test_the_name_of_a_task_that_ended_exists_still_and_the_next_generation_is_free() -> None:
    async with desk() as at:
        assert await at.dispatcher.hand_over(a_job())
        await at.receiver.arrived(1)
        await at.ended(f"{QUEUE}/tasks/{a_job().job_id}-1")
        assert await at.dispatcher.hand_over(a_job()) is True
        assert at.told() == {(Event.TASK_NOT_CREATED, TaskOutcome.EXISTS): 1}
        assert await at.dispatcher.hand_over(a_job(generation=2))
        _, got = await at.receiver.arrived(2)
        assert got.service("taskname") == f"{a_job().job_id}-2"


@pytest.mark.parametrize("code", [code for code in Code if code is not Code.ALREADY_EXISTS])
async def test_every_refusal_is_a_failed_hand_over_with_a_code_of_the_table(
    code: Code, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "listen_finalization")
    async with desk() as at:
        at.server.faults.set(Fault(FaultKind.REFUSE, code=code))
        assert await at.dispatcher.hand_over(a_job()) is False
        expected = OUTCOMES[grpc.StatusCode[code]]
        assert at.told() == {(Event.TASK_NOT_CREATED, expected): 1}
        (record,) = [one for one in caplog.records if one.name == "listen_finalization"]
        line = json.loads(record.getMessage())
        assert line.pop("fault").startswith("google.api_core.exceptions.")
        assert line == {
            "event": "task_not_created",
            "code": expected,
            "job_id": a_job().job_id,
        }
        told_as_error = record.levelno == logging.ERROR
        assert told_as_error is (code in TOLD_AS_ERROR)


def test_the_table_has_a_row_for_every_status_of_grpc() -> None:
    assert set(OUTCOMES) == set(grpc.StatusCode)


async def test_a_queue_that_is_missing_or_was_deleted_is_told_as_such() -> None:
    async with desk(queue=f"{LOCATION}/queues/none") as at:
        assert await at.dispatcher.hand_over(a_job()) is False
        assert at.told() == {(Event.TASK_NOT_CREATED, TaskOutcome.QUEUE_MISSING): 1}
    async with desk() as at:
        await at.client.delete_queue(name=QUEUE)
        assert await at.dispatcher.hand_over(a_job()) is False
        assert at.told() == {(Event.TASK_NOT_CREATED, TaskOutcome.QUEUE_CLOSED): 1}


async def test_one_unavailable_answer_is_repeated_and_the_task_is_created() -> None:
    async with desk(paused=True) as at:
        at.server.faults.set(Fault(FaultKind.REFUSE, count=1, code=Code.UNAVAILABLE))
        assert await at.dispatcher.hand_over(a_job()) is True
        assert (len(await at.tasks()), at.told()) == (1, {})


async def test_an_unavailable_answer_is_repeated_once_and_no_other_answer_is() -> None:
    async with desk() as at:
        for code, calls in ((Code.UNAVAILABLE, 2), (Code.RESOURCE_EXHAUSTED, 1), (Code.ABORTED, 1)):
            at.server.faults.hits.clear()
            at.server.faults.set(Fault(FaultKind.REFUSE, code=code))
            assert await at.dispatcher.hand_over(a_job()) is False
            assert at.server.faults.hits[FaultKind.REFUSE] == calls


async def test_a_task_that_was_kept_behind_an_unavailable_answer_exists_at_the_repeat() -> None:
    async with desk(paused=True) as at:
        at.server.faults.set(Fault(FaultKind.UNCERTAIN, count=1, code=Code.UNAVAILABLE))
        assert await at.dispatcher.hand_over(a_job()) is True
        assert len(await at.tasks()) == 1
        assert at.told() == {(Event.TASK_NOT_CREATED, TaskOutcome.EXISTS): 1}


async def test_an_answer_that_never_comes_is_uncertain_within_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cloud_tasks, "TIME_LIMIT", 0.3)
    async with desk(paused=True) as at:
        at.server.faults.set(Fault(FaultKind.SILENT))
        assert await at.dispatcher.hand_over(a_job()) is False
        assert len(await at.tasks()) == 1
        assert at.told() == {(Event.TASK_NOT_CREATED, TaskOutcome.UNCERTAIN): 1}


async def test_a_repeat_does_not_lengthen_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloud_tasks, "TIME_LIMIT", 0.3)
    monkeypatch.setattr(cloud_tasks, "REPEAT_AFTER", 3_600)
    async with desk() as at:
        at.server.faults.set(Fault(FaultKind.REFUSE, code=Code.UNAVAILABLE))
        assert await at.dispatcher.hand_over(a_job()) is False
        assert at.told() == {(Event.TASK_NOT_CREATED, TaskOutcome.UNCERTAIN): 1}


async def test_a_server_that_is_away_is_unavailable() -> None:
    async with desk() as at:
        gone = await open_client("127.0.0.1:1")
        at.dispatcher._client, before = gone, at.dispatcher._client
        assert await at.dispatcher.hand_over(a_job()) is False
        assert at.told() == {(Event.TASK_NOT_CREATED, TaskOutcome.UNAVAILABLE): 1}
        await before.transport.close()  # type: ignore[no-untyped-call]


async def test_whatever_a_client_raises_is_a_failed_hand_over() -> None:
    class Broken:
        async def create_task(self, *_: object, **__: object) -> None:
            raise RuntimeError("secret")

    async with desk() as at:
        made = CloudTasksDispatcher(
            Broken(),  # type: ignore[arg-type]
            QUEUE,
            handler_url="https://h/",
            audience=AUDIENCE,
            invoker=INVOKER,
            deadline_seconds=15,
            signals=at.signals,
        )
        assert await made.hand_over(a_job()) is False
        assert at.told() == {(Event.TASK_NOT_CREATED, TaskOutcome.OTHER): 1}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"queue": " "}, "queue"),
        ({"handler_url": ""}, "handler_url"),
        ({"audience": ""}, "audience"),
        ({"invoker": "\t"}, "invoker"),
        ({"deadline_seconds": 14.9}, "deadline_seconds"),
        ({"deadline_seconds": 1800.1}, "deadline_seconds"),
        ({"deadline_seconds": float("nan")}, "deadline_seconds"),
    ],
)
async def test_values_that_cannot_work_are_refused_at_construction(
    changes: dict[str, Any], named: str
) -> None:
    async with desk() as at:
        with pytest.raises(ValueError, match=named):
            await dispatcher(at, **changes)


@pytest.mark.parametrize(
    "endpoint", ["tasks.example:443", "127.0.0.1", "10.0.0.1:80", "localhost:", "[::]:80", ":80"]
)
async def test_an_endpoint_that_others_could_answer_for_is_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match="loopback"):
        await open_client(endpoint)


@pytest.mark.parametrize("endpoint", ["localhost:1", "127.0.0.1:1", "[::1]:1"])
async def test_an_endpoint_on_loopback_needs_no_credentials(endpoint: str) -> None:
    await (await open_client(endpoint)).transport.close()  # type: ignore[no-untyped-call]


async def test_the_default_credentials_are_looked_for_off_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import threading

    import google.auth
    from google.auth.credentials import AnonymousCredentials

    where: list[threading.Thread] = []

    def default(**_: object) -> tuple[AnonymousCredentials, str]:
        where.append(threading.current_thread())
        return AnonymousCredentials(), "demo"  # type: ignore[no-untyped-call]

    monkeypatch.setattr(google.auth, "default", default)
    client = await open_client()
    assert where and where[0] is not threading.main_thread()
    assert client.api_endpoint == "cloudtasks.googleapis.com"
    await client.transport.close()  # type: ignore[no-untyped-call]


async def test_no_request_is_logged_where_the_clients_own_logging_is_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scope, handler = logging.getLogger("google"), KeptLog()
    monkeypatch.setattr(scope, "level", logging.DEBUG)
    monkeypatch.setattr(scope, "handlers", [handler])
    scope.manager._clear_cache()  # type: ignore[attr-defined]
    async with desk(paused=True) as at:
        assert await at.dispatcher.hand_over(a_job()) is True
        assert INVOKER not in handler.text
        module = "google.cloud.tasks_v2.services.cloud_tasks.transports.grpc_asyncio"
        logging.getLogger(module).setLevel(logging.DEBUG)
        assert await at.dispatcher.hand_over(a_job(2)) is True
        assert INVOKER in handler.text
    scope.manager._clear_cache()  # type: ignore[attr-defined]
