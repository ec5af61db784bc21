"""The key server rotates, fails, hangs and lies; known keys go on, and nobody can make a storm."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from listen_finalization.auth.fetch import MAX_DOCUMENT, Fetch
from listen_finalization.auth.issuer import LocalIssuer
from listen_finalization.auth.keys import (
    COLD_PAUSE,
    REFRESH_PAUSE,
    RENEW_AT,
    STALE_LIMIT,
    HttpKeySource,
    KeySourceError,
)
from listen_finalization.auth.outcome import Reason, Refused, Verified
from listen_finalization.auth.sources import NoKey
from listen_finalization.auth.verifier import TokenVerifier
from listen_finalization.settings import BY_FIELD
from listen_finalization.testing.key_server import Answer, KeyServer

from .tokens import NOW, TASKS, bearer, certificate, private_key, service_claims, signed


@dataclass
class Clock:
    now: float = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> Iterator[KeyServer]:
    started = KeyServer()
    yield started
    started.stop()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as opened:
        yield opened


@pytest.fixture
async def source(
    server: KeyServer, client: httpx.AsyncClient, clock: Clock
) -> AsyncIterator[HttpKeySource]:
    made = HttpKeySource(server.url, client, clock=clock)
    yield made
    await made.aclose()


def jwks(*kids: str) -> dict[str, object]:
    entry = LocalIssuer(private_key()).jwks()["keys"][0]
    return {"keys": [{**entry, "kid": kid} for kid in kids]}


async def is_known(source: HttpKeySource, kid: str) -> bool:
    return not isinstance(await source.key(kid), NoKey)


async def test_a_key_is_fetched_once_and_then_held(
    server: KeyServer, source: HttpKeySource
) -> None:
    server.answer = Answer.json(jwks("a", "b"))
    first = await source.key("a")
    assert first is await source.key("a")
    assert await is_known(source, "b")
    assert (server.fetches, source.last_fetch) == (1, Fetch.OK)


async def test_a_certificate_map_is_read_like_a_jwks(
    server: KeyServer, source: HttpKeySource
) -> None:
    server.answer = Answer.json({"a": certificate(), "b": "garbage", "c": 7})
    key = await source.key("a")
    assert isinstance(key, rsa.RSAPublicKey)
    assert key.public_numbers() == private_key().public_key().public_numbers()
    assert await source.key("b") is NoKey.UNKNOWN


async def test_a_rotated_key_is_found_by_one_fetch_and_the_retired_one_is_gone(
    server: KeyServer, source: HttpKeySource, clock: Clock
) -> None:
    server.answer = Answer.json(jwks("old"))
    assert await is_known(source, "old")
    server.answer = Answer.json(jwks("new"))
    clock.now += REFRESH_PAUSE
    assert await is_known(source, "new")
    clock.now += REFRESH_PAUSE
    assert await source.key("old") is NoKey.UNKNOWN
    assert server.fetches == 3


async def test_unknown_keys_cause_at_most_one_fetch_per_pause(
    server: KeyServer, source: HttpKeySource, clock: Clock
) -> None:
    server.answer = Answer.json(jwks("a"))
    for number in range(100):
        clock.now += 1
        assert await source.key(f"unknown-{number}") is NoKey.UNKNOWN
    assert server.fetches == 4


async def test_a_flood_of_unknown_keys_causes_at_most_two_fetches(
    server: KeyServer, source: HttpKeySource
) -> None:
    server.answer = Answer.json(jwks("key-1"))
    checks = TokenVerifier(TASKS, source, now=lambda: NOW)
    good = signed(service_claims())
    _, payload, signature = good.split(".")
    heads = [signed({}, kid=f"unknown-{n}").split(".")[0] for n in range(1_000)]
    flood = [bearer(f"{head}.{payload}.{signature}") for head in heads]
    answers = await asyncio.gather(*map(checks.verify, flood))
    assert set(answers) == {Refused(Reason.UNKNOWN_KEY)}
    assert server.fetches <= 2
    assert isinstance(await checks.verify(bearer(good)), Verified)
    assert server.fetches <= 2


async def test_many_waiters_share_one_fetch_and_one_may_leave(
    server: KeyServer, source: HttpKeySource
) -> None:
    server.answer = Answer.json(jwks("a"))
    server.hold.clear()
    waiters = [asyncio.create_task(is_known(source, "a")) for _ in range(50)]
    await asyncio.to_thread(server.arrived.wait)
    waiters[0].cancel()
    server.hold.set()
    answers = await asyncio.gather(*waiters, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert answers[1:] == [True] * 49
    assert server.fetches == 1


async def test_a_set_is_renewed_behind_before_it_is_stale(
    server: KeyServer, source: HttpKeySource, clock: Clock
) -> None:
    server.answer = Answer.json(jwks("a"), max_age=600)
    assert await is_known(source, "a")
    clock.now += 600 * RENEW_AT - 1
    assert await is_known(source, "a")
    assert server.fetches == 1
    server.answer = Answer.json(jwks("b"), max_age=600)
    server.arrived.clear()
    server.hold.clear()
    clock.now += 1
    assert await asyncio.wait_for(is_known(source, "a"), 1)
    await asyncio.to_thread(server.arrived.wait)
    assert await is_known(source, "a")
    server.hold.set()
    await source.refresh()
    assert await is_known(source, "b")
    assert server.fetches == 2


@pytest.mark.parametrize("idle", [600, 80_000])
async def test_a_removed_key_is_not_accepted_once_more_after_the_cache_time(
    idle: int, server: KeyServer, source: HttpKeySource, clock: Clock
) -> None:
    server.answer = Answer.json(jwks("stolen", "kept"), max_age=600)
    assert await is_known(source, "stolen")
    server.answer = Answer.json(jwks("kept"), max_age=600)
    clock.now += idle
    answers = await asyncio.gather(*(source.key("stolen") for _ in range(50)))
    assert set(answers) == {NoKey.UNKNOWN}
    assert await is_known(source, "kept")
    assert server.fetches == 2


async def test_a_stale_set_waits_for_one_fetch_of_an_outage_and_then_answers_at_once(
    server: KeyServer, source: HttpKeySource, clock: Clock
) -> None:
    server.answer = Answer.json(jwks("a"), max_age=600)
    assert await is_known(source, "a")
    server.answer = Answer(status=503)
    clock.now += 600
    assert all(await asyncio.gather(*(is_known(source, "a") for _ in range(50))))
    assert (server.fetches, source.last_fetch) == (2, Fetch.BAD_STATUS)
    clock.now += REFRESH_PAUSE
    server.arrived.clear()
    server.hold.clear()
    assert await asyncio.wait_for(is_known(source, "a"), 1)
    await asyncio.to_thread(server.arrived.wait)
    assert await asyncio.wait_for(is_known(source, "a"), 1)
    assert (server.fetches, source.last_fetch) == (3, Fetch.BAD_STATUS)


async def test_a_server_that_drips_is_given_up(client: httpx.AsyncClient) -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b" ")
            await asyncio.sleep(0.02)

    dripping = await asyncio.start_server(drip, "127.0.0.1", 0)
    async with dripping:
        url = f"http://127.0.0.1:{dripping.sockets[0].getsockname()[1]}/"
        source = HttpKeySource(url, client, timeout=0.2)
        assert await source.key("a") is NoKey.UNAVAILABLE
        assert source.last_fetch is Fetch.UNREACHABLE


async def test_known_keys_survive_an_outage_up_to_the_limit(
    server: KeyServer, source: HttpKeySource, clock: Clock
) -> None:
    server.answer = Answer.json(jwks("a"), max_age=600)
    assert await is_known(source, "a")
    server.stop()
    clock.now += 600 + STALE_LIMIT - 1
    assert await is_known(source, "a")
    await source.refresh()
    assert source.last_fetch is Fetch.UNREACHABLE
    assert await is_known(source, "a")
    assert await source.key("b") is NoKey.UNAVAILABLE
    clock.now += 1
    assert await source.key("a") is NoKey.UNAVAILABLE


async def test_without_any_key_an_outage_is_our_fault_and_ends_soon(
    server: KeyServer, source: HttpKeySource, clock: Clock
) -> None:
    server.answer = Answer(status=500)
    checks = TokenVerifier(TASKS, source, now=lambda: NOW)
    token = bearer(signed(service_claims()))
    for _ in range(20):
        assert await checks.verify(token) == Refused(Reason.KEYS_UNAVAILABLE)
    assert server.fetches == 1
    server.answer = Answer.json(jwks("key-1"))
    clock.now += COLD_PAUSE
    assert isinstance(await checks.verify(token), Verified)


async def test_a_server_that_never_answers_is_given_up(
    server: KeyServer, client: httpx.AsyncClient
) -> None:
    server.hold.clear()
    source = HttpKeySource(server.url, client, timeout=0.05)
    assert await source.key("a") is NoKey.UNAVAILABLE
    assert source.last_fetch is Fetch.UNREACHABLE


GOOD = Answer.json(jwks("a"))


BROKEN: list[tuple[str, Answer, Fetch]] = [
    ("missing", Answer(status=404), Fetch.BAD_STATUS),
    ("failing", Answer(GOOD.body, status=503), Fetch.BAD_STATUS),
    ("moved", Answer(status=302, headers={"Location": "/keys"}), Fetch.BAD_STATUS),
    ("not modified", Answer(status=304), Fetch.BAD_STATUS),
    ("partial", Answer(GOOD.body, status=206), Fetch.BAD_STATUS),
    ("huge", Answer(b" " * (MAX_DOCUMENT + 1)), Fetch.TOO_LARGE),
    ("padded", Answer(b" " * MAX_DOCUMENT + GOOD.body), Fetch.TOO_LARGE),
    ("empty", Answer(b""), Fetch.BAD_DOCUMENT),
    ("text", Answer(b"<html>"), Fetch.BAD_DOCUMENT),
    ("list", Answer(b"[]"), Fetch.BAD_DOCUMENT),
    ("deep", Answer(b"[" * 100_000), Fetch.BAD_DOCUMENT),
    ("no keys", Answer(b'{"keys": []}'), Fetch.BAD_DOCUMENT),
    ("null keys", Answer(b'{"keys": null}'), Fetch.BAD_DOCUMENT),
    ("odd keys", Answer(b'{"keys": [null, 7, {}, {"kid": "a"}]}'), Fetch.BAD_DOCUMENT),
    (
        "compressed",
        Answer(gzip.compress(GOOD.body), headers={"Content-Encoding": "gzip"}),
        Fetch.BAD_DOCUMENT,
    ),
]


@pytest.mark.parametrize(
    ("answer", "outcome"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN]
)
async def test_a_broken_answer_counts_as_an_outage_and_keeps_the_known_keys(
    server: KeyServer, source: HttpKeySource, clock: Clock, answer: Answer, outcome: Fetch
) -> None:
    server.answer = answer
    assert await source.key("a") is NoKey.UNAVAILABLE
    assert (server.fetches, source.last_fetch) == (1, outcome)
    server.answer = GOOD
    clock.now += COLD_PAUSE
    assert await is_known(source, "a")
    server.answer = answer
    clock.now += REFRESH_PAUSE
    assert await source.key("b") is NoKey.UNAVAILABLE
    assert await is_known(source, "a")
    assert (server.fetches, source.last_fetch) == (3, outcome)


@pytest.mark.parametrize(
    "url",
    [
        BY_FIELD["google_certs_url"].default,
        BY_FIELD["firebase_certs_url"].default,
        "http://localhost:1/",
        "http://[::1]/",
    ],
)
async def test_a_key_server_speaks_https_or_is_on_loopback(
    url: str, client: httpx.AsyncClient
) -> None:
    assert HttpKeySource(url, client).last_fetch is None


@pytest.mark.parametrize(
    "url",
    [
        "",
        "canary",
        "http://canary.example/keys",
        "http://127.0.0.1.canary.example/",
        "https:///canary",
        "ftp://canary.example/",
        "https://canary:secret@example.com/",
        "https://canary\n.example/",
    ],
)
async def test_another_address_is_refused_without_showing_it(
    url: str, client: httpx.AsyncClient
) -> None:
    with pytest.raises(KeySourceError) as fault:
        HttpKeySource(url, client)
    assert "canary" not in str(fault.value)
    assert fault.value.__cause__ is None
    assert fault.value.__context__ is None or fault.value.__suppress_context__


async def test_closing_ends_a_fetch_that_runs(server: KeyServer, source: HttpKeySource) -> None:
    server.hold.clear()
    waiter = asyncio.create_task(source.key("a"))
    await asyncio.to_thread(server.arrived.wait)
    await source.aclose()
    await source.aclose()
    with pytest.raises(asyncio.CancelledError):
        await waiter


async def test_a_redirect_is_never_followed_even_by_a_client_that_would(
    server: KeyServer, clock: Clock
) -> None:
    server.answer = Answer(status=302, headers={"Location": server.url})
    async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as eager:
        source = HttpKeySource(server.url, eager, clock=clock)
        assert await source.key("a") is NoKey.UNAVAILABLE
    assert server.fetches == 1
