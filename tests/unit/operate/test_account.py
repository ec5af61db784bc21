"""The account that Google is asked with: found off the event loop, for all probes once."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives import serialization

from listen_finalization.operate import google as subject
from listen_finalization.operate.facts import Blind, Unseen
from listen_finalization.operate.google import Endpoints, Google, Headers, default_account

from .google_rest import TOKEN
from .live_project import LiveProject, signing_key


def key_file(path: Path, token_url: str) -> Path:
    """Write a service account's key, whose tokens come from `token_url`."""
    pem = signing_key().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    told = {
        "type": "service_account",
        "project_id": "acme-prod",
        "private_key_id": "one",
        "private_key": pem.decode(),
        "client_email": "doctor@acme-prod.iam.gserviceaccount.com",
        "token_uri": token_url,
    }
    path.write_text(json.dumps(told))
    return path


async def test_the_default_account_is_looked_for_in_a_thread(
    live: LiveProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = key_file(tmp_path / "key.json", f"{live.rest.url}/token")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    threads: list[str] = []
    found = subject._fresh_headers

    def noting(seconds: float) -> Headers | Unseen:
        threads.append(threading.current_thread().name)
        return found(seconds)

    monkeypatch.setattr(subject, "_fresh_headers", noting)
    headers = await default_account()
    assert not isinstance(headers, Unseen)
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert threads != [threading.current_thread().name]


async def test_a_refused_account_is_none(
    live: LiveProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.rest.answers["/token"] = (400, {"error": "invalid_grant"})
    file = key_file(tmp_path / "key.json", f"{live.rest.url}/token")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    assert await default_account() == Unseen(Blind.NO_CREDENTIALS)


def test_a_server_of_tokens_that_says_nothing_is_given_up(
    live: LiveProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.rest.hanging.add("/token")
    file = key_file(tmp_path / "key.json", f"{live.rest.url}/token")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    assert subject._fresh_headers(0.2) == Unseen(Blind.NO_CREDENTIALS)


async def test_all_wait_for_one_search_and_one_that_gives_up_does_not_end_it() -> None:
    begun, free = asyncio.Event(), asyncio.Event()
    searches: list[None] = []

    async def search() -> Headers | Unseen:
        searches.append(None)
        begun.set()
        await free.wait()
        return Unseen(Blind.NO_CREDENTIALS)

    async with httpx.AsyncClient() as client:
        google = Google(client, search, Endpoints())
        first, second = (asyncio.create_task(google.get("http://127.0.0.1:1/")) for _ in "ab")
        await begun.wait()
        first.cancel()
        await asyncio.wait([first])
        free.set()
        assert await second == Unseen(Blind.NO_CREDENTIALS)
        assert len(searches) == 1
        await google.aclose()


async def test_a_search_that_runs_on_is_given_up_at_the_end() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def search() -> Headers | Unseen:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    async with httpx.AsyncClient() as client:
        google = Google(client, search, Endpoints())
        asked = asyncio.create_task(google.get("http://127.0.0.1:1/"))
        await begun.wait()
        asked.cancel()
        await asyncio.wait([asked])
        await google.aclose()
        assert ended.is_set()
