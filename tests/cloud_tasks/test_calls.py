"""What the real client is answered: values, views, pages, and the status of every refusal."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import tasks_v2
from google.protobuf import field_mask_pb2  # type: ignore[import-untyped]

from .at_hand import LOCATION, QUEUE, Bench, bench, retry


async def test_a_queue_with_nothing_set_shows_the_defaults_of_production() -> None:
    async with bench() as at:
        shown = await at.client.get_queue(name=QUEUE)
        assert shown == tasks_v2.Queue(
            name=QUEUE,
            state=tasks_v2.Queue.State.RUNNING,
            rate_limits=tasks_v2.RateLimits(
                max_dispatches_per_second=500, max_burst_size=500, max_concurrent_dispatches=1000
            ),
            retry_config=retry(
                max_attempts=100, min_backoff=0.1, max_backoff=3600, max_doublings=16
            ),
        )


async def test_an_update_changes_what_the_mask_names_and_nothing_else() -> None:
    async with bench() as at:
        await at.client.pause_queue(name=QUEUE)
        changed = await at.client.update_queue(
            queue=tasks_v2.Queue(
                name=QUEUE,
                retry_config=retry(max_attempts=5, min_backoff=7),
                rate_limits=tasks_v2.RateLimits(max_concurrent_dispatches=4),
            ),
            update_mask=field_mask_pb2.FieldMask(
                paths=["retry_config.max_attempts", "rate_limits.max_concurrent_dispatches"]
            ),
        )
        assert changed == await at.client.get_queue(name=QUEUE)
        assert changed.state == tasks_v2.Queue.State.PAUSED
        assert changed.rate_limits.max_concurrent_dispatches == 4
        assert changed.retry_config == retry(
            max_attempts=5, min_backoff=0.1, max_backoff=3600, max_doublings=16
        )


async def test_an_update_without_a_mask_replaces_all_and_creates_what_is_missing() -> None:
    async with bench() as at:
        name = f"{LOCATION}/queues/other"
        asked = tasks_v2.Queue(name=name, retry_config=retry(max_attempts=5))
        made = await at.client.update_queue(queue=asked)
        assert made.retry_config.max_attempts == 5
        again = await at.client.update_queue(queue=tasks_v2.Queue(name=name))
        assert again.retry_config.max_attempts == 100


async def test_a_purge_is_dated_and_empties_the_queue() -> None:
    async with bench() as at:
        await at.create(schedule_time=at.moment(60))
        purged = await at.client.purge_queue(name=QUEUE)
        assert purged.purge_time == at.moment()
        assert [task async for task in await at.client.list_tasks(parent=QUEUE)] == []


async def test_queues_come_in_pages() -> None:
    async with bench() as at:
        for number in range(3):
            queue = tasks_v2.Queue(name=f"{LOCATION}/queues/q{number}")
            await at.client.create_queue(parent=LOCATION, queue=queue)
        request = tasks_v2.ListQueuesRequest(parent=LOCATION, page_size=2)
        pages = [
            [queue.name.rpartition("/")[2] for queue in page.queues]
            async for page in (await at.client.list_queues(request)).pages
        ]
        assert pages == [["jobs", "q0"], ["q1", "q2"]]


async def test_tasks_come_in_pages_and_a_deleted_one_moves_no_other() -> None:
    async with bench() as at:
        for number in range(5):
            await at.create(name=f"t{number}", schedule_time=at.moment(60))
        request = tasks_v2.ListTasksRequest(parent=QUEUE, page_size=2)
        seen = []
        async for page in (await at.client.list_tasks(request)).pages:
            seen.append([task.name.rpartition("/")[2] for task in page.tasks])
            if len(seen) == 1:
                await at.client.delete_task(name=f"{QUEUE}/tasks/t0")
        assert seen == [["t0", "t1"], ["t2", "t3"], ["t4"]]


async def test_the_body_is_in_the_full_view_alone() -> None:
    async with bench() as at:
        made = await at.create(
            "/x?y=1",
            "named",
            body=b"content",
            headers={"A": "b"},
            schedule_time=at.moment(60),
            dispatch_deadline=dt.timedelta(seconds=30),
        )
        full = await at.client.get_task(
            tasks_v2.GetTaskRequest(name=made.name, response_view=tasks_v2.Task.View.FULL)
        )
        assert full == tasks_v2.Task(
            name=f"{QUEUE}/tasks/named",
            view=tasks_v2.Task.View.FULL,
            http_request=tasks_v2.HttpRequest(
                url=at.receiver.url + "/x?y=1",
                http_method=tasks_v2.HttpMethod.POST,
                headers={"A": "b"},
                body=b"content",
            ),
            schedule_time=at.moment(60),
            create_time=at.moment(),
            dispatch_deadline=dt.timedelta(seconds=30),
        )
        full.http_request.body = b""
        basic = tasks_v2.Task(full, view=tasks_v2.Task.View.BASIC)
        assert made == basic == await at.client.get_task(name=made.name)


async def test_a_task_without_name_deadline_or_time_gets_them() -> None:
    async with bench() as at:
        await at.client.pause_queue(name=QUEUE)
        made = await at.create(schedule_time=at.moment(-3600))
        assert made.name.removeprefix(f"{QUEUE}/tasks/").isdecimal()
        assert made.dispatch_deadline == dt.timedelta(minutes=10)
        assert made.schedule_time == at.moment()


def _long_headers() -> dict[str, str]:
    return {f"h{number}": "x" * 8_000 for number in range(11)}


def _seconds(value: float) -> dt.timedelta:
    return dt.timedelta(seconds=value)


Change = Callable[[tasks_v2.Task], object]
BAD_TASKS: dict[str, Change] = {
    "no request": lambda task: setattr(task, "http_request", None),
    "other scheme": lambda task: setattr(task.http_request, "url", "ftp://host/"),
    "no host": lambda task: setattr(task.http_request, "url", "https:///path"),
    "long url": lambda task: setattr(task.http_request, "url", "http://h/" + "x" * 2_075),
    "body of a GET": lambda task: setattr(task.http_request, "http_method", 2),
    "broken header": lambda task: task.http_request.headers.update({"a b": "c"}),
    "header with a line end": lambda task: task.http_request.headers.update({"a": "b\r\nc: d"}),
    "header that is not ASCII": lambda task: task.http_request.headers.update({"a": "\u00e9"}),
    "long headers": lambda task: task.http_request.headers.update(_long_headers()),
    "too large": lambda task: setattr(task.http_request, "body", b"x" * 1_048_577),
    "short deadline": lambda task: setattr(task, "dispatch_deadline", dt.timedelta(seconds=14.999)),
    "long deadline": lambda task: setattr(
        task, "dispatch_deadline", dt.timedelta(seconds=1800.001)
    ),
    "no account": lambda task: setattr(task.http_request, "oidc_token", tasks_v2.OidcToken()),
    "other queue": lambda task: setattr(task, "name", f"{LOCATION}/queues/other/tasks/t"),
    "long name": lambda task: setattr(task, "name", f"{QUEUE}/tasks/{'x' * 501}"),
    "name with a dot": lambda task: setattr(task, "name", f"{QUEUE}/tasks/a.b"),
    "negative doublings": lambda task: setattr(task, "retry_config", retry(max_doublings=-1)),
    "negative wait": lambda task: setattr(task, "retry_config", retry(min_backoff=-1)),
    "negative duration": lambda task: setattr(task, "retry_config", retry(max_retry_duration=-1)),
    "negative attempts": lambda task: setattr(task, "retry_config", retry(max_attempts=-2)),
}


@pytest.mark.parametrize("change", BAD_TASKS.values(), ids=BAD_TASKS.keys())
async def test_a_task_that_cannot_work_is_invalid(change: Change) -> None:
    async with bench() as at:
        task = at.task(body=b"x")
        change(task)
        with pytest.raises(exceptions.InvalidArgument):
            await at.client.create_task(parent=QUEUE, task=task)
        assert [one async for one in await at.client.list_tasks(parent=QUEUE)] == []


GOOD_TASKS: dict[str, Change] = {
    "shortest deadline": lambda task: setattr(task, "dispatch_deadline", dt.timedelta(seconds=15)),
    "longest deadline": lambda task: setattr(task, "dispatch_deadline", dt.timedelta(minutes=30)),
    "longest url": lambda task: setattr(task.http_request, "url", "http://h/" + "x" * 2_074),
    "longest name": lambda task: setattr(task, "name", f"{QUEUE}/tasks/{'x' * 500}"),
    "large body": lambda task: setattr(task.http_request, "body", b"x" * 1_000_000),
}


@pytest.mark.parametrize("change", GOOD_TASKS.values(), ids=GOOD_TASKS.keys())
async def test_a_task_at_the_limit_is_taken(change: Change) -> None:
    async with bench() as at:
        await at.client.pause_queue(name=QUEUE)
        task = at.task(body=b"x")
        change(task)
        assert (await at.client.create_task(parent=QUEUE, task=task)).name


@pytest.mark.parametrize(("ahead", "taken"), [(30 * 86_400, True), (30 * 86_400 + 1, False)])
async def test_a_task_may_be_scheduled_thirty_days_ahead(ahead: int, taken: bool) -> None:
    async with bench() as at:
        if taken:
            assert (await at.create(schedule_time=at.moment(ahead))).schedule_time
        else:
            with pytest.raises(exceptions.InvalidArgument):
                await at.create(schedule_time=at.moment(ahead))


Call = Callable[[Bench], Any]
REFUSALS: dict[str, tuple[type[Exception], Call]] = {
    "queue of another location": (
        exceptions.InvalidArgument,
        lambda at: at.client.create_queue(
            parent=LOCATION, queue=tasks_v2.Queue(name="projects/p/locations/l/queues/q")
        ),
    ),
    "queue name": (
        exceptions.InvalidArgument,
        lambda at: at.client.get_queue(name=f"{LOCATION}/queues/a_b"),
    ),
    "rate": (
        exceptions.InvalidArgument,
        lambda at: at.client.create_queue(
            parent=LOCATION,
            queue=tasks_v2.Queue(
                name=f"{LOCATION}/queues/q",
                rate_limits=tasks_v2.RateLimits(max_dispatches_per_second=501),
            ),
        ),
    ),
    "concurrency": (
        exceptions.InvalidArgument,
        lambda at: at.client.create_queue(
            parent=LOCATION,
            queue=tasks_v2.Queue(
                name=f"{LOCATION}/queues/q",
                rate_limits=tasks_v2.RateLimits(max_concurrent_dispatches=5001),
            ),
        ),
    ),
    "back-off": (
        exceptions.InvalidArgument,
        lambda at: at.client.create_queue(
            parent=LOCATION,
            queue=tasks_v2.Queue(
                name=f"{LOCATION}/queues/q", retry_config=retry(min_backoff=9, max_backoff=8)
            ),
        ),
    ),
    "mask": (
        exceptions.InvalidArgument,
        lambda at: at.client.update_queue(
            queue=tasks_v2.Queue(name=QUEUE),
            update_mask=field_mask_pb2.FieldMask(paths=["colour"]),
        ),
    ),
    "page size": (
        exceptions.InvalidArgument,
        lambda at: at.client.list_tasks(tasks_v2.ListTasksRequest(parent=QUEUE, page_size=-1)),
    ),
    "page token": (
        exceptions.InvalidArgument,
        lambda at: at.client.list_tasks(tasks_v2.ListTasksRequest(parent=QUEUE, page_token="x")),
    ),
    "filter": (
        exceptions.MethodNotImplemented,
        lambda at: at.client.list_queues(
            tasks_v2.ListQueuesRequest(parent=LOCATION, filter="state: PAUSED")
        ),
    ),
    "queue with a target": (
        exceptions.MethodNotImplemented,
        lambda at: at.client.create_queue(
            parent=LOCATION,
            queue=tasks_v2.Queue(
                name=f"{LOCATION}/queues/q", http_target=tasks_v2.HttpTarget(http_method=1)
            ),
        ),
    ),
    "OAuth": (
        exceptions.MethodNotImplemented,
        lambda at: at.client.create_task(
            parent=QUEUE,
            task=tasks_v2.Task(
                http_request=tasks_v2.HttpRequest(
                    url="http://h/", oauth_token=tasks_v2.OAuthToken(service_account_email="a@b")
                )
            ),
        ),
    ),
    "App Engine": (
        exceptions.MethodNotImplemented,
        lambda at: at.client.create_task(
            parent=QUEUE,
            task=tasks_v2.Task(
                app_engine_http_request=tasks_v2.AppEngineHttpRequest(relative_uri="/")
            ),
        ),
    ),
    "IAM": (
        exceptions.MethodNotImplemented,
        lambda at: at.client.get_iam_policy({"resource": QUEUE}, retry=None),
    ),
}


@pytest.mark.parametrize(("fault", "call"), REFUSALS.values(), ids=REFUSALS.keys())
async def test_a_call_that_cannot_be_served_says_so(fault: type[Exception], call: Call) -> None:
    async with bench() as at:
        with pytest.raises(fault):
            await call(at)
