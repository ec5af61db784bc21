"""Lock keys on a real server: whose they are, and what a server in trouble comes to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from redis import Redis

from listen_finalization.observe.signals import Event, Signals
from listen_finalization.runlock.redis import PAUSE, PREFIX, RedisLocks
from listen_finalization.runlock.trouble import LockTrouble
from listen_finalization.testing.clock import FakeClock
from listen_finalization.testing.redis_server import RedisServer, free_port

JOB = "0b5cfd0a-1f2c-8f6e-9d3a-3f1c5a7e9b20"
KEY = PREFIX + JOB
A, B, C = "a" * 32, "b" * 32, "c" * 32
TTL = 1800
SOON = 0.2


class Bench:
    """Locks over one server, with a client beside them that sees the keys."""

    def __init__(self, url: str, *, time_limit: float = 5.0) -> None:
        self.signals = Signals()
        self.clock = FakeClock()
        self.locks = RedisLocks(
            url,
            self.signals,
            ttl=TTL,
            time_limit=time_limit,
            monotonic=self.clock.monotonic,
        )

    @property
    def troubles(self) -> dict[str, int]:
        return {
            code: count
            for (event, code), count in self.signals.counts.items()
            if event is Event.RUN_LOCK_AWAY
        }


@asynccontextmanager
async def bench(url: str, **options: Any) -> AsyncIterator[Bench]:
    made = Bench(url, **options)
    try:
        yield made
    finally:
        await made.locks.close()


def eyes(server: RedisServer) -> Redis:
    return Redis.from_url(server.url)


async def test_a_free_lock_is_taken_under_the_claim_id_for_its_lifetime(
    redis_server: RedisServer,
) -> None:
    async with bench(redis_server.url) as here:
        assert await here.locks.take(JOB, A) is None
        with eyes(redis_server) as seen:
            assert {key: seen.get(key) for key in seen.scan_iter()} == {KEY.encode(): A.encode()}
            assert TTL - 60 < seen.ttl(KEY) <= TTL
        assert here.signals.counts == {}


async def test_a_held_lock_names_its_owner_and_is_left_as_it_is(redis_server: RedisServer) -> None:
    async with bench(redis_server.url) as here:
        with eyes(redis_server) as seen:
            seen.set(KEY, A, px=60_000)
            assert await here.locks.take(JOB, B) == A.encode()
            assert seen.get(KEY) == A.encode()
            assert seen.ttl(KEY) <= 60


async def test_a_lock_that_is_ours_already_is_nobody_elses(redis_server: RedisServer) -> None:
    async with bench(redis_server.url) as here:
        assert await here.locks.take(JOB, A) is None
        assert await here.locks.take(JOB, A) is None


async def test_only_the_owner_of_a_lock_deletes_it(redis_server: RedisServer) -> None:
    async with bench(redis_server.url) as here:
        with eyes(redis_server) as seen:
            await here.locks.take(JOB, A)
            assert not await here.locks.drop(JOB, B)
            assert seen.get(KEY) == A.encode()
            assert await here.locks.drop(JOB, A)
            assert seen.get(KEY) is None
            assert not await here.locks.drop(JOB, A)


async def test_a_lock_is_replaced_only_while_it_is_what_was_seen(
    redis_server: RedisServer,
) -> None:
    async with bench(redis_server.url) as here:
        with eyes(redis_server) as seen:
            seen.set(KEY, A)
            assert await here.locks.replace(JOB, B, seen=A.encode())
            assert (seen.get(KEY), TTL - 60 < seen.ttl(KEY) <= TTL) == (B.encode(), True)
            assert not await here.locks.replace(JOB, C, seen=A.encode())
            assert seen.get(KEY) == B.encode()
            seen.delete(KEY)
            assert await here.locks.replace(JOB, C, seen=B.encode())
            assert seen.get(KEY) == C.encode()


async def test_of_many_that_take_over_at_once_one_does(redis_server: RedisServer) -> None:
    async with bench(redis_server.url) as here:
        with eyes(redis_server) as seen:
            seen.set(KEY, A)
            names = [f"{number:032x}" for number in range(20)]
            won = await asyncio.gather(
                *(here.locks.replace(JOB, name, seen=A.encode()) for name in names)
            )
            assert sum(won) == 1
            assert seen.get(KEY) == names[won.index(True)].encode()


# Trouble


def down(server: RedisServer) -> None:
    server.end()


def frozen(server: RedisServer) -> None:
    server.freeze()


def paused(server: RedisServer) -> None:
    with eyes(server) as beside:
        beside.client_pause(2_000)


def password_wanted(server: RedisServer) -> None:
    with eyes(server) as beside:
        beside.config_set("requirepass", "another")
        beside.client_kill_filter(_type="normal", skipme=True)


def not_permitted(server: RedisServer) -> None:
    with eyes(server) as beside:
        beside.execute_command("ACL", "SETUSER", "default", "-eval")


def a_replica(server: RedisServer) -> None:
    with eyes(server) as beside:
        beside.replicaof("127.0.0.1", free_port())


def a_replica_without_its_master(server: RedisServer) -> None:
    with eyes(server) as beside:
        beside.config_set("replica-serve-stale-data", "no")
    a_replica(server)


def full(server: RedisServer) -> None:
    with eyes(server) as beside:
        beside.config_set("maxmemory", "1")


def loading(server: RedisServer) -> None:
    with eyes(server) as beside:
        beside.config_set("rdbcompression", "no")
        beside.mset({f"key-{number}": "x" * 2_000 for number in range(3_000)})
        beside.save()
    server.end()
    server.start(**{"key-load-delay": "10000", "loading-process-events-interval-bytes": "1024"})


def of_another_kind(server: RedisServer) -> None:
    with eyes(server) as beside:
        beside.rpush(KEY, "not a lock")


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (down, LockTrouble.UNREACHABLE),
        (frozen, LockTrouble.TIMED_OUT),
        (paused, LockTrouble.TIMED_OUT),
        (password_wanted, LockTrouble.REFUSED),
        (not_permitted, LockTrouble.REFUSED),
        (a_replica, LockTrouble.READ_ONLY),
        (a_replica_without_its_master, LockTrouble.READ_ONLY),
        (full, LockTrouble.FULL),
        (loading, LockTrouble.LOADING),
        (of_another_kind, LockTrouble.FAULT),
    ],
)
@pytest.mark.parametrize("known", [True, False], ids=["connected", "not connected"])
async def test_no_trouble_is_raised_and_each_has_its_code(
    known: bool,
    trouble: Callable[[RedisServer], None],
    code: LockTrouble,
    redis_server: RedisServer,
) -> None:
    async with bench(redis_server.url, time_limit=1.0) as here:
        if known:
            assert not await here.locks.drop(JOB, A)
        await asyncio.to_thread(trouble, redis_server)
        assert await here.locks.take(JOB, A) is None
        assert here.troubles == {code: 1}


async def test_a_wrong_password_is_refused_without_being_told(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    password_wanted(redis_server)
    url = redis_server.url.replace("//", "//:canary-8e1f@")
    async with bench(url) as here:
        assert await here.locks.take(JOB, A) is None
        assert here.troubles == {LockTrouble.REFUSED: 1}
    assert "run_lock_away" in caplog.text
    assert "canary" not in caplog.text


Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


async def is_none(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await says_nothing(reader, writer)


async def never_ends(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"$1000000000\r\n")
    await says_nothing(reader, writer)


async def says_lists(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while asked := (await reader.read(65_536)).count(b"*"):
        writer.write(b"*1\r\n:1\r\n" * asked)
    writer.close()


async def is_slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each command well within the time limit, and all of them far outside."""
    while asked := (await reader.read(65_536)).count(b"*"):
        for _ in range(asked):
            await asyncio.sleep(0.7 * SOON)
            writer.write(b"+OK\r\n")
    writer.close()


@asynccontextmanager
async def impostor(answer: Answer) -> AsyncIterator[tuple[str, list[int]]]:
    """Serve what is no Redis; yield its URL and the list of its connections."""
    calls: list[int] = []

    async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append(len(calls))
        await answer(reader, writer)

    server = await asyncio.start_server(counted, "127.0.0.1", 0)
    async with server:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", calls


@pytest.mark.parametrize(
    ("answer", "troubles"),
    [
        (hangs_up, {LockTrouble.UNREACHABLE: 1}),
        (says_nothing, {LockTrouble.TIMED_OUT: 1}),
        (never_ends, {LockTrouble.TIMED_OUT: 1}),
        (is_slow, {LockTrouble.TIMED_OUT: 1}),
        (is_none, {LockTrouble.FAULT: 1}),
        (says_lists, {}),
    ],
)
async def test_whatever_answers_stops_no_run(answer: Answer, troubles: dict[str, int]) -> None:
    async with impostor(answer) as (url, _), bench(url, time_limit=SOON) as here:
        assert await here.locks.take(JOB, A) is None
        assert here.troubles == troubles


# The circuit


async def test_a_server_in_trouble_is_not_asked_again_by_each_delivery() -> None:
    async with impostor(hangs_up) as (url, calls), bench(url) as here:
        for _ in range(10):
            assert await here.locks.take(JOB, A) is None
            assert not await here.locks.drop(JOB, A)
        assert len(calls) == 1
        assert here.troubles == {LockTrouble.UNREACHABLE: 1, LockTrouble.SKIPPED: 9}


async def test_after_the_pause_one_call_asks_for_all() -> None:
    async with impostor(says_nothing) as (url, calls), bench(url, time_limit=SOON) as here:
        await here.locks.take(JOB, A)
        here.clock.advance(PAUSE)
        await asyncio.gather(*(here.locks.take(JOB, A) for _ in range(10)))
        assert len(calls) == 2
        assert here.troubles == {LockTrouble.TIMED_OUT: 2, LockTrouble.SKIPPED: 9}


async def test_after_a_refusal_the_server_is_looked_up_anew() -> None:
    """The connection of before may lead to a server that was a master once."""

    async def refuses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while asked := (await reader.read(65_536)).count(b"*"):
            writer.write(b"-READONLY You can't write against a read only replica.\r\n" * asked)
        writer.close()

    async with impostor(refuses) as (url, calls), bench(url) as here:
        for asks in (1, 2, 3):
            await here.locks.take(JOB, A)
            here.clock.advance(PAUSE)
            assert len(calls) == asks
        assert here.troubles == {LockTrouble.READ_ONLY: 3}


@pytest.mark.parametrize("cure", ["thawed", "started again", "unpaused"])
async def test_a_server_that_is_back_keeps_locks_again_after_the_pause(
    cure: str, redis_server: RedisServer
) -> None:
    async with bench(redis_server.url, time_limit=0.5) as here:
        await here.locks.take(JOB, A)
        trouble = {"thawed": frozen, "started again": down, "unpaused": paused}[cure]
        await asyncio.to_thread(trouble, redis_server)
        assert await here.locks.take(JOB, B) is None
        if cure == "thawed":
            redis_server.thaw()
        elif cure == "started again":
            redis_server.start()
        else:
            with eyes(redis_server) as beside:
                beside.ping()
        with eyes(redis_server) as seen:
            seen.set(KEY, C)
            assert await here.locks.take(JOB, B) is None
            here.clock.advance(PAUSE)
            # What answers now is this call, not an earlier one whose answer came late.
            assert await here.locks.take(JOB, B) == C.encode()
            seen.delete(KEY)
            assert await here.locks.take(JOB, B) is None
            assert seen.get(KEY) == B.encode()
        assert here.troubles[LockTrouble.SKIPPED] == 1
        assert sum(here.troubles.values()) == 2


async def test_many_takers_at_once_need_no_second_server(redis_server: RedisServer) -> None:
    async with bench(redis_server.url) as here:
        names = [f"{number:032x}" for number in range(64)]
        held = await asyncio.gather(*(here.locks.take(JOB, name) for name in names))
        winner = names[held.index(None)]
        assert sorted(set(held), key=str) == sorted({None, winner.encode()}, key=str)


async def test_a_process_that_never_locks_connects_to_nothing() -> None:
    async with impostor(hangs_up) as (url, calls), bench(url):
        pass
    assert calls == []
