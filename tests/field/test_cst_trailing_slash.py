"""cst-trailing-slash: a path is served as it is written, or not at all; nothing is redirected."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import unquote

import pytest

from listen_finalization.domain.budgets import DispatchMode
from listen_finalization.errors import SettingsError
from listen_finalization.settings import RUN_PATH, Settings

from .checks import all_checks
from .ground import Ground
from .house import house

FINALIZE = "/v1/conversations/c1/finalize"
NOT_FOUND = ("/problems/not-found", "/problems/conversation-not-found")


def variants(path: str) -> list[str]:
    last = path.rpartition("/")
    return [
        f"{path}/",
        f"{path}//",
        f"/{path}",
        path.replace("/v1/", "/v1//"),
        f"{last[0]}//{last[2]}",
        f"{last[0]}%2F{last[2]}",
        f"{path}%2F",
        f"{path}%2f",
        path.upper(),
        path.title(),
        f"{path}/.",
        f"{path};x=1",
        f"{path}%00",
        f"{path}%20",
    ]


async def raw(port: int, path: str, token: str, body: bytes) -> tuple[int, dict[str, str], str]:
    """Ask over a real socket, so that no client tidies the path up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: house.example\r\nX-Forwarded-Proto: https\r\n"
        f"Authorization: {token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answer = (await reader.read()).decode()
    writer.close()
    head, _, text = answer.partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(first.split()[1]), headers, text


async def looked_at(port: int, path: str, token: str, sent: bytes) -> None:
    status, headers, text = await raw(port, path, token, sent)
    assert "location" not in headers
    if unquote(path) in (FINALIZE, RUN_PATH):
        real = await raw(port, unquote(path), token, sent)
        assert (status, text) == (real[0], real[2])
    else:
        assert status == 404, path
        assert json.loads(text)["type"] in NOT_FOUND


async def test_no_variant_of_a_path_is_redirected(ground: Ground) -> None:
    async with house(ground, running=False) as home:
        await home.spoken("c1")
        body = json.dumps({"job_id": "0" * 36, "dispatch_generation": 1}).encode()
        asked = [(path, home.token(), b"") for path in variants(FINALIZE)]
        asked += [(path, home.task_token(), body) for path in variants(RUN_PATH)]
        async with home.served() as port:
            for path, token, sent in asked:
                await looked_at(port, path, token, sent)
        assert len(await home.jobs()) == 1
        await all_checks(home)


async def test_a_variant_is_checked_like_the_path_that_it_stands_for(ground: Ground) -> None:
    async with house(ground, running=False) as home:
        await home.spoken("c1")
        async with home.served() as port:
            for path in (FINALIZE, RUN_PATH, *variants(FINALIZE), *variants(RUN_PATH)):
                status, headers, _ = await raw(port, path, "Bearer none", b"{}")
                assert status in (401, 404)
                assert "location" not in headers
        assert not await home.jobs()
        await all_checks(home)


@pytest.mark.parametrize("tail", ["/", "//", "?x=1", "#x", "%2F"])
def test_a_handler_url_with_a_tail_is_refused_at_the_start(tail: str) -> None:
    with pytest.raises(SettingsError, match="LISTEN_FINALIZATION_TASKS_HANDLER_URL"):
        Settings(
            dispatch_mode=DispatchMode.CLOUD_TASKS,
            tasks_queue="conversation-finalization",
            tasks_handler_url=f"https://worker.example{RUN_PATH}{tail}",
            tasks_oidc_audience=f"https://worker.example{RUN_PATH}",
            tasks_invoker_sa="invoker@project.iam.gserviceaccount.com",
            tasks_project="project",
            tasks_location="europe-west1",
            firebase_project="project",
        )
