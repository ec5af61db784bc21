"""The life of a server: its ports, its state file, its end."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud import tasks_v2

from listen_finalization.domain.job import Instant, seconds
from listen_finalization.testing.cloud_tasks import (
    CallRefusedError,
    CloudTasksServer,
    PortUnavailableError,
)
from listen_finalization.testing.cloud_tasks.engine import Kept
from listen_finalization.testing.cloud_tasks.journal import Journal, StateFileError
from listen_finalization.testing.cloud_tasks.values import (
    Attempt,
    Ending,
    Queue,
    QueueState,
    RateLimits,
    RetryConfig,
    Target,
    Task,
)

from .at_hand import QUEUE, bench, retry
from .receiver import Receiver

AT = Instant(1_760_000_000_000_000)
EVERYTHING: dict[str, Kept] = {
    f"{QUEUE}/tasks/t": Task(
        f"{QUEUE}/tasks/t",
        Target("http://h/", "PUT", (("A", "b"), ("C", "d")), b"\x00\xff", "a@b", "aud"),
        AT,
        Instant(AT + 1),
        Instant(AT + 2),
        deadline=seconds(15),
        retry=RetryConfig(1, 2, 3, 4, 5),
        dispatches=2,
        responses=1,
        first=Attempt(AT, AT),
        last=Attempt(AT, AT, AT, 500, Ending.HTTP_STATUS),
    ),
    QUEUE: Queue(QUEUE, RateLimits(7.0, 3), RetryConfig(5), QueueState.PAUSED, AT),
    f"{QUEUE}/tasks/gone": Instant(AT + 5),
    "projects/p/locations/l/queues/gone": Instant(AT + 6),
}


def test_a_state_file_gives_back_every_value_and_queues_first(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state")
    for name, kept in EVERYTHING.items():
        journal.record(name, kept)
    journal.flush()
    journal.close()
    again = Journal(tmp_path / "state")
    found = list(again.kept())
    assert dict(found) == EVERYTHING
    assert found[0][0] == QUEUE
    again.record(QUEUE, None)
    again.flush()
    assert QUEUE not in dict(again.kept())
    again.close()


def test_what_was_not_flushed_is_not_kept(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state")
    journal.record(QUEUE, Queue(QUEUE))
    journal.close()
    again = Journal(tmp_path / "state")
    assert list(again.kept()) == []
    again.close()


def test_a_change_is_written_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state")
    journal.record(QUEUE, Queue(QUEUE))
    journal.flush()
    written = journal._db.total_changes
    journal.flush()
    assert journal._db.total_changes == written
    journal.close()


def test_a_state_file_has_one_holder(tmp_path: Path) -> None:
    first = Journal(tmp_path / "state")
    with pytest.raises(StateFileError):
        Journal(tmp_path / "state")
    first.close()


@pytest.mark.parametrize("value", ["", "[]", "{}", '{"target": 1}'])
def test_a_damaged_state_file_is_refused(tmp_path: Path, value: str) -> None:
    Journal(tmp_path / "state").close()
    with sqlite3.connect(tmp_path / "state") as database:
        database.execute("INSERT INTO kept VALUES (?, ?)", (f"{QUEUE}/tasks/t", value))
    database.close()
    journal = Journal(tmp_path / "state")
    with pytest.raises(StateFileError):
        list(journal.kept())
    journal.close()


def test_a_file_that_is_no_state_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("hello " * 1_000)
    with pytest.raises(StateFileError):
        Journal(tmp_path / "state")


async def test_tasks_queues_names_and_key_survive_a_restart(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with bench(state=state, key=None) as at:
        changed = tasks_v2.Queue(name=QUEUE, retry_config=retry(max_attempts=5))
        queue = await at.client.update_queue(queue=changed)
        waiting = await at.create("/kept", "kept", schedule_time=at.moment(60), body=b"b")
        gone = await at.create("/gone", "gone", schedule_time=at.moment(60))
        await at.client.delete_task(name=gone.name)
        keys = at.server.identity.jwks()
    async with bench(state=state, key=None) as at:
        assert at.server.identity.jwks() == keys
        assert await at.client.get_queue(name=QUEUE) == queue
        assert await at.client.get_task(name=waiting.name) == waiting
        for name in ("kept", "gone"):
            with pytest.raises(exceptions.AlreadyExists):
                await at.create(name=name)


async def test_an_attempt_that_the_end_of_the_server_cut_is_made_again(tmp_path: Path) -> None:
    async with Receiver() as target:
        target.hold.clear()
        async with bench(state=tmp_path / "state") as at:
            task = at.task(name="t")
            task.http_request.url = target.url
            await at.client.create_task(parent=QUEUE, task=task)
            await target.arrived(1)
        async with bench(state=tmp_path / "state"):
            first, again = await target.arrived(2)
            assert [one.service("taskname") for one in (first, again)] == ["t", "t"]
            assert again.service("taskretrycount") == "1"


async def test_a_port_that_is_in_use_is_refused_and_what_was_opened_is_closed() -> None:
    async with CloudTasksServer() as first:
        port = int(first.address.rpartition(":")[2])
        keys_port = int(first.control_url.rpartition(":")[2])
        for refused in (CloudTasksServer(port=port), CloudTasksServer(keys_port=keys_port)):
            with pytest.raises(PortUnavailableError):
                await refused.__aenter__()
    async with CloudTasksServer(port=port, keys_port=keys_port) as again:
        assert (again.address, again.keys_url) == (first.address, first.keys_url)


async def test_a_server_that_cannot_start_leaves_nothing_open(tmp_path: Path) -> None:
    async with CloudTasksServer() as first:
        refused = CloudTasksServer(
            port=int(first.address.rpartition(":")[2]), state=tmp_path / "state"
        )
        with pytest.raises(PortUnavailableError):
            await refused.__aenter__()
        keys_port = int(refused.control_url.rpartition(":")[2])
        async with CloudTasksServer(keys_port=keys_port, state=tmp_path / "state"):
            pass


async def test_a_queue_that_was_deleted_lately_is_not_made_at_the_start(tmp_path: Path) -> None:
    async with bench(state=tmp_path / "state") as at:
        await at.client.delete_queue(name=QUEUE)
    with pytest.raises(CallRefusedError):
        async with bench(state=tmp_path / "state"):
            pass


def test_a_malformed_queue_name_is_refused_at_construction() -> None:
    with pytest.raises(CallRefusedError):
        CloudTasksServer(queues=["jobs"])


async def test_a_state_file_that_fails_ends_the_server_loudly(tmp_path: Path) -> None:
    async with bench(state=tmp_path / "state") as at:
        at.server._journal.close()  # type: ignore[union-attr]
        with pytest.raises(exceptions.ServiceUnavailable):
            await at.create()
        with pytest.raises(StateFileError):
            await at.server.served()
