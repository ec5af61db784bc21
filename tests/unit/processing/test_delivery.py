"""Deliveries to real receivers on loopback: every trouble is a code."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

import pytest

from listen_finalization.domain.codes import EffectCode
from listen_finalization.processing import signing
from listen_finalization.processing.delivery import VERDICTS, DeliveryResult, Verdict
from listen_finalization.processing.network import GuardedStream
from listen_finalization.processing.webhooks import MAX_ANSWER_BYTES, WebhookSender

from .receivers import (
    BODY,
    GZIP_BOMB,
    HUGE_HEADERS,
    NAME,
    NOW,
    SECRET,
    SHORT,
    Handler,
    close,
    delivery,
    endless_body,
    endless_interim,
    hang,
    hang_in_body,
    in_turn,
    receiving,
    reset,
    says,
    sender,
    status,
)


async def code_of(answer: Handler, *, time_limit: float = 10.0) -> EffectCode:
    async with receiving(answer) as receiver, sender(time_limit=time_limit) as webhooks:
        return (await webhooks.send(delivery(receiver.url))).code


@pytest.mark.parametrize(
    ("code", "expected", "verdict"),
    [
        (200, "http_2xx", "delivered"),
        (201, "http_2xx", "delivered"),
        (204, "http_2xx", "delivered"),
        (300, "http_3xx", "drop"),
        (304, "http_3xx", "drop"),
        (400, "http_4xx", "drop"),
        (401, "http_4xx", "drop"),
        (404, "http_4xx", "drop"),
        (408, "http_408", "retry"),
        (410, "http_4xx", "drop"),
        (425, "http_425", "retry"),
        (429, "http_429", "retry"),
        (500, "http_5xx", "retry"),
        (503, "http_5xx", "retry"),
        (600, "protocol_error", "retry"),
        (999, "protocol_error", "retry"),
    ],
)
async def test_a_status_is_a_code_and_a_code_is_a_verdict(
    code: int, expected: str, verdict: str
) -> None:
    async with receiving(status(code)) as receiver, sender() as webhooks:
        result = await webhooks.send(delivery(receiver.url))

    assert (result.code, result.verdict) == (expected, verdict)
    assert len(receiver.requests) == 1


def test_every_code_of_a_delivery_has_a_verdict() -> None:
    not_of_deliveries = {
        EffectCode.STORED,
        EffectCode.RESULT_SHORTENED,
        EffectCode.EMPTY,
        EffectCode.DISCARDED,
        EffectCode.DESTINATION_GONE,
        EffectCode.ATTEMPTS_EXHAUSTED,
    }
    assert set(VERDICTS) == set(EffectCode) - not_of_deliveries


async def test_the_request_carries_key_id_signature_and_nothing_of_its_own() -> None:
    async with receiving(status(200)) as receiver, sender() as webhooks:
        sent = delivery(receiver.url)
        await webhooks.send(sent)

    headers = receiver.headers()
    assert receiver.requests[0].startswith(b"POST /canary-path?token=canary-token HTTP/1.1\r\n")
    assert receiver.body() == BODY
    assert dict(headers) == {
        "host": f"127.0.0.1:{receiver.port}",
        "user-agent": "listen-finalization",
        "connection": "close",
        "content-type": "application/json",
        "content-length": str(len(BODY)),
        "idempotency-key": sent.idempotency_key,
        **signing.headers(SECRET, BODY, delivery_id=sent.delivery_id, timestamp=NOW),
    }
    assert signing.verify(SECRET, BODY, headers=headers, now=NOW) == sent.delivery_id


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_never_followed(code: int) -> None:
    async with (
        receiving(status(200)) as target,
        sender() as webhooks,
        receiving(status(code, f"Location: {target.url}")) as receiver,
    ):
        result = await webhooks.send(delivery(receiver.url))

    assert result == DeliveryResult(EffectCode.HTTP_3XX)
    assert result.verdict is Verdict.DROP
    assert target.requests == []


@pytest.mark.parametrize("answer", [hang, endless_interim])
async def test_an_answer_without_headers_ends_at_the_time_limit(answer: Handler) -> None:
    async with receiving(answer) as receiver, sender(time_limit=SHORT) as webhooks:
        result = await webhooks.send(delivery(receiver.url))
        async with asyncio.timeout(5):
            await receiver.gone.wait()

    assert result == DeliveryResult(EffectCode.TIMEOUT)
    assert result.verdict is Verdict.RETRY


async def test_a_receiver_that_does_not_read_ends_at_the_time_limit() -> None:
    never = asyncio.Event()

    async def deaf(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await never.wait()
        writer.close()

    server = await asyncio.start_server(deaf, "127.0.0.1", 0, limit=1_024)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server, sender(time_limit=SHORT) as webhooks:
        result = await webhooks.send(delivery(url, body=bytes(20_000_000)))
        never.set()

    assert result.code == EffectCode.TIMEOUT


async def test_a_slow_lookup_ends_at_the_time_limit() -> None:
    async def never(host: str, port: int, /) -> Sequence[str]:
        await asyncio.Event().wait()
        return ()

    async with WebhookSender(time_limit=SHORT, resolver=never) as webhooks:
        result = await webhooks.send(delivery(f"https://{NAME}/"))

    assert result.code == EffectCode.TIMEOUT


async def test_a_received_status_stands_when_its_body_hangs() -> None:
    assert await code_of(hang_in_body, time_limit=SHORT) == EffectCode.HTTP_2XX


async def test_a_received_status_stands_when_its_body_breaks_off() -> None:
    cut = says(b"HTTP/1.1 503 No\r\nContent-Length: 100\r\n\r\nhalf")
    assert await code_of(cut) == EffectCode.HTTP_5XX


@pytest.mark.parametrize("answer", [endless_body, GZIP_BOMB])
async def test_at_most_four_kilobytes_of_a_body_are_read(
    monkeypatch: pytest.MonkeyPatch, answer: Handler
) -> None:
    got = bytearray()
    read = GuardedStream.read

    async def counting(
        stream: GuardedStream,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> bytes:
        piece = await read(stream, max_bytes, timeout)
        got.extend(piece)
        return piece

    monkeypatch.setattr(GuardedStream, "read", counting)
    assert await code_of(answer) == EffectCode.HTTP_2XX
    assert len(got.partition(b"\r\n\r\n")[2]) <= MAX_ANSWER_BYTES


@pytest.mark.parametrize("answer", [reset, close])
async def test_an_end_after_accept_and_before_an_answer_is_a_reset(answer: Handler) -> None:
    assert await code_of(answer) == EffectCode.RESET


async def test_a_reset_before_accept_is_a_reset() -> None:
    loop, waiting = asyncio.get_running_loop(), asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        loop.add_reader(listener, waiting.set)
        async with sender() as webhooks:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
            sending = asyncio.create_task(webhooks.send(delivery(url)))
            await waiting.wait()
            loop.remove_reader(listener)
            listener.close()
            result = await sending

    assert result.code == EffectCode.RESET
    assert result.verdict is Verdict.RETRY


async def test_a_closed_port_is_a_failed_connect() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    async with sender() as webhooks:
        result = await webhooks.send(delivery(f"http://127.0.0.1:{port}/"))

    assert result.code == EffectCode.CONNECT_FAILED


@pytest.mark.parametrize(
    "answer",
    [
        says(b"\x00\x01garbage\r\n\r\n"),
        says(b"SSH-2.0-canary\r\n"),
        says(b"HTTP/1.1 200 OK\r\nbroken header\r\n\r\n"),
        says(b"HTTP/1.1 200 OK\r\nX-Half: "),
        says(b"HTTP/1.1 101 Switching\r\nUpgrade: canary\r\nConnection: upgrade\r\n\r\n"),
        HUGE_HEADERS,
    ],
    ids=["bytes", "ssh", "broken", "half", "upgrade", "huge"],
)
async def test_what_is_not_http_is_a_protocol_error(answer: Handler) -> None:
    assert await code_of(answer) == EffectCode.PROTOCOL_ERROR


async def test_a_cookie_is_not_sent_back() -> None:
    async with receiving(status(200, "Set-Cookie: id=canary")) as receiver, sender() as webhooks:
        for _ in range(2):
            await webhooks.send(delivery(receiver.url))

    assert len(receiver.requests) == 2
    assert "cookie" not in receiver.headers(1)


async def test_every_attempt_has_a_connection_of_its_own() -> None:
    # The second answer of this receiver comes with the first: it must reach nobody.
    double = says(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")
    async with receiving(in_turn(double, status(404))) as receiver, sender() as webhooks:
        results = [await webhooks.send(delivery(receiver.url)) for _ in range(2)]

    assert [result.code for result in results] == [EffectCode.HTTP_5XX, EffectCode.HTTP_4XX]


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
        monkeypatch.setenv(name.lower(), "http://127.0.0.1:1")
    assert await code_of(status(204)) == EffectCode.HTTP_2XX


async def test_a_receiver_that_drops_repeats_sees_each_event_once() -> None:
    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    answers = in_turn(status(500), reset, late, status(200))
    async with (
        receiving(answers) as receiver,
        sender() as patient,
        sender(time_limit=SHORT) as hasty,
    ):
        sent = delivery(receiver.url)
        results = [(await one.send(sent)).verdict for one in (patient, patient, hasty, patient)]

    assert results == [Verdict.RETRY, Verdict.RETRY, Verdict.RETRY, Verdict.DELIVERED]
    ids = {
        signing.verify(SECRET, receiver.body(index), headers=receiver.headers(index), now=NOW)
        for index in range(4)
    }
    keys = {receiver.headers(index)["idempotency-key"] for index in range(4)}
    assert (ids, keys) == ({sent.delivery_id}, {sent.idempotency_key})
    assert {receiver.body(index) for index in range(4)} == {BODY}


async def test_waiting_for_a_connection_costs_no_time_of_the_limit() -> None:
    answers = in_turn(hang, status(200))
    async with receiving(answers) as receiver, sender(time_limit=0.2, connections=1) as webhooks:
        sends = [webhooks.send(delivery(receiver.url)) for _ in range(2)]
        results = await asyncio.gather(*sends)

    assert [result.code for result in results] == [EffectCode.TIMEOUT, EffectCode.HTTP_2XX]


async def test_open_connections_are_bounded() -> None:
    open_now: set[asyncio.StreamWriter] = set()
    most = 0

    async def counted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal most
        open_now.add(writer)
        most = max(most, len(open_now))
        await asyncio.sleep(0)
        open_now.discard(writer)
        writer.write(b"HTTP/1.1 204 No\r\n\r\n")

    async with receiving(counted) as receiver, sender(connections=2) as webhooks:
        sends = [webhooks.send(delivery(receiver.url)) for _ in range(20)]
        results = await asyncio.gather(*sends)

    assert {result.code for result in results} == {EffectCode.HTTP_2XX}
    assert len(receiver.requests) == 20
    assert most <= 2


async def test_cancellation_passes_through_and_closes_the_connection() -> None:
    async with receiving(hang) as receiver, sender(connections=1) as webhooks:
        sending = asyncio.create_task(webhooks.send(delivery(receiver.url)))
        await receiver.called.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        async with asyncio.timeout(5):
            await receiver.gone.wait()
        receiver.answer = status(200)
        assert (await webhooks.send(delivery(receiver.url))).code == EffectCode.HTTP_2XX


async def test_loopback_is_refused_unless_it_is_admitted() -> None:
    async with receiving(status(200)) as receiver, sender(admit_loopback=False) as webhooks:
        results = [
            await webhooks.send(delivery(receiver.url)),
            await webhooks.send(delivery(f"https://127.0.0.1:{receiver.port}/")),
            await webhooks.send(delivery(f"https://localhost:{receiver.port}/")),
        ]

    assert {result.code for result in results} == {EffectCode.ADDRESS_REFUSED}
    assert results[0].verdict is Verdict.DROP
    assert receiver.requests == []


@pytest.mark.parametrize("answers", [["127.0.0.1"], ["93.184.215.14", "127.0.0.1"], ["10.0.0.1"]])
async def test_a_name_with_a_private_address_is_refused_and_never_called(
    answers: list[str],
) -> None:
    async with (
        receiving(status(200)) as receiver,
        sender(admit_loopback=False, answers=answers) as webhooks,
    ):
        result = await webhooks.send(delivery(f"https://{NAME}:{receiver.port}/"))

    assert result == DeliveryResult(EffectCode.ADDRESS_REFUSED)
    assert receiver.requests == []


async def test_a_name_without_addresses_is_retried() -> None:
    async with sender() as webhooks:
        result = await webhooks.send(delivery(f"https://{NAME}/"))

    assert (result.code, result.verdict) == (EffectCode.DNS_FAILED, Verdict.RETRY)
