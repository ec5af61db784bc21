"""Canaries in url, secret, body and answers: found in no log, repr or result."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from listen_finalization.domain.codes import EffectCode
from listen_finalization.processing import signing

from .receivers import (
    BODY,
    HUGE_HEADERS,
    NAME,
    SECRET,
    SHORT,
    Handler,
    delivery,
    endless_body,
    hang,
    hang_in_body,
    receiving,
    reset,
    says,
    sender,
    server_tls,
    status,
    write_certificate,
)

CANARIES = [
    "canary",
    "127.0.0.1",
    SECRET.decode(),
    signing.format_secret(SECRET),
    BODY.decode(),
]


def traces(text: str) -> list[str]:
    """Return the canaries found in `text`: plain, URL-encoded or base64."""
    forms = [
        form
        for canary in CANARIES
        for form in (canary, quote(canary, safe=""), base64.b64encode(canary.encode()).decode())
    ]
    return [form for form in forms if form.rstrip("=") in text]


def said(caplog: pytest.LogCaptureFixture) -> str:
    """Return all that was logged, but for the accept of the test's own server."""
    records = [one for one in caplog.records if one.funcName != "_accept_connection"]
    return "".join(map(logging.Formatter("%(name)s %(message)s").format, records))


@pytest.fixture
def debugging(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Everything at DEBUG, the libraries' own loggers included."""
    with contextlib.ExitStack() as levels:
        for name in (None, "httpx", "httpcore", "asyncio"):
            levels.enter_context(caplog.at_level(logging.DEBUG, logger=name))
        yield caplog


TROUBLES: list[Handler] = [
    status(200, body=BODY),
    status(302, "Location: http://127.0.0.1/canary"),
    status(500, "X-Canary: canary", body=BODY),
    hang,
    hang_in_body,
    endless_body,
    reset,
    says(b"canary garbage\r\n\r\n"),
    HUGE_HEADERS,
]


@pytest.mark.parametrize("answer", TROUBLES)
async def test_no_trouble_brings_url_secret_or_body_into_a_log_or_result(
    debugging: pytest.LogCaptureFixture, answer: Handler
) -> None:
    async with receiving(answer) as receiver, sender(time_limit=SHORT) as webhooks:
        sent = delivery(receiver.url)
        debugging.clear()
        asyncio.get_running_loop().set_debug(True)
        result = await webhooks.send(sent)
        asyncio.get_running_loop().set_debug(False)
        seen = said(debugging) + "".join(map(repr, (result, sent, sent.destination, webhooks)))

    assert traces(seen) == []


@pytest.mark.parametrize(
    ("path", "answers"),
    [("", None), ("", []), ("", ["10.0.0.1"]), (":1", ["127.0.0.1"])],
    ids=["no_dns", "no_address", "refused", "closed_port"],
)
async def test_no_failed_connect_brings_the_address_into_a_log_or_result(
    debugging: pytest.LogCaptureFixture, path: str, answers: list[str] | None
) -> None:
    async with sender(answers=answers) as webhooks:
        asyncio.get_running_loop().set_debug(True)
        result = await webhooks.send(delivery(f"https://{NAME}{path}/"))
        asyncio.get_running_loop().set_debug(False)

    assert traces(said(debugging) + repr(result)) == []


async def test_no_tls_failure_brings_the_name_into_a_log_or_result(
    debugging: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    certificate = write_certificate(tmp_path)
    async with (
        receiving(status(200), tls=server_tls(certificate)) as receiver,
        sender(answers=["127.0.0.1"]) as webhooks,
    ):
        debugging.clear()
        result = await webhooks.send(delivery(f"https://{NAME}:{receiver.port}/"))

    assert result.code == EffectCode.TLS_FAILED
    assert traces(said(debugging) + repr(result)) == []


async def test_other_clients_of_the_process_keep_their_log(
    debugging: pytest.LogCaptureFixture,
) -> None:
    async with receiving(status(200)) as receiver, sender() as webhooks:
        await webhooks.send(delivery(receiver.url))
        debugging.clear()
        async with httpx.AsyncClient(trust_env=False) as other:
            await other.get(receiver.url, headers={"Content-Length": "0"})

    names = {record.name for record in debugging.records}
    assert {"httpx", "httpcore.connection", "httpcore.http11"} <= names
    assert traces(said(debugging)) != []
