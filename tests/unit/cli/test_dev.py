"""`dev cloud-tasks`: what it prints, refuses, and how it ends."""

from __future__ import annotations

import asyncio
import builtins
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.dispatch.cloud_tasks import open_client

from .conftest import Ran

QUEUE = "projects/demo/locations/here/queues/jobs"
Cli = Callable[..., Ran]


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, list[str]]]:
    """Run the command in a process of its own, and return its first lines."""
    ports = ("--port", "0", "--keys-port", "0")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "listen_finalization.cli.main", "dev", "cloud-tasks"),
        *ports,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        lines: list[str] = []
        while not any("client = " in line for line in lines):
            line = (await process.stdout.readline()).decode()
            assert line, "it ended before it was up"
            lines.append(line.rstrip())
        yield process, lines
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_it_serves_the_real_client_and_says_how_to_reach_it(tmp_path: Path) -> None:
    async with running("--queue", QUEUE, "--state", str(tmp_path / "state")) as (_, lines):
        address = lines[0].removeprefix("Cloud Tasks server is up: ")
        keys = lines[1].split()[1]
        assert lines[1:] == [
            f"  keys    {keys}",
            f"  faults  {keys.removesuffix('/certs')}/faults",
            "Point this product at it:",
            f"  export CLOUD_TASKS_EMULATOR_HOST={address}",
            f"  export LISTEN_FINALIZATION_GOOGLE_CERTS_URL={keys}",
            "  export SYNC_TASKS_PROJECT=demo SYNC_TASKS_LOCATION=here",
            "  export LISTEN_FINALIZATION_TASKS_QUEUE=jobs",
            "A client of your own in Python:",
            "  from listen_finalization.dispatch.cloud_tasks import open_client",
            f'  client = await open_client("{address}")',
        ]
        client = await open_client(address)
        assert (await client.get_queue(name=QUEUE)).name == QUEUE
        await client.transport.close()  # type: ignore[no-untyped-call]
        async with httpx.AsyncClient() as http:
            assert len((await http.get(keys)).json()["keys"]) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_it_cleanly(number: signal.Signals) -> None:
    async with running() as (process, _):
        process.send_signal(number)
        _, err = await process.communicate()
        assert (process.returncode, err.decode()) == (ExitCode.OK, "")


@pytest.mark.parametrize("option", ["--port", "--keys-port"])
def test_a_port_in_use_is_told_with_what_to_do(option: str, cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        other = "--keys-port" if option == "--port" else "--port"
        ran = cli("dev", "cloud-tasks", option, port, other, "0")
    assert ran == Ran(
        ExitCode.UNAVAILABLE,
        "",
        f"error: port {port} is in use\n"
        "next:  stop what uses it, or give another --port or --keys-port (0: any free one)\n",
    )


def test_a_malformed_queue_is_refused_by_its_option(cli: Cli) -> None:
    ran = cli("dev", "cloud-tasks", "--queue", "jobs")
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert ran.err.startswith("error: Invalid value for --queue: the queue name is malformed\n")


def test_a_state_file_that_is_none_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("hello " * 1_000)
    ran = cli(
        "dev", "cloud-tasks", "--port", "0", "--keys-port", "0", "--state", tmp_path / "state"
    )
    assert (ran.code, ran.out) == (ExitCode.UNAVAILABLE, "")
    assert ran.err.startswith("error: The state file cannot be used")


def test_without_its_extra_it_says_what_to_install(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = builtins.__import__

    def missing(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "listen_finalization.testing.cloud_tasks":
            raise ModuleNotFoundError("No module named 'grpc'", name="grpc")
        return found(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert cli("dev", "cloud-tasks") == Ran(
        ExitCode.USAGE,
        "",
        "error: a library of the Cloud Tasks server is not installed\n"
        "next:  pip install 'listen-finalization[server,google]'\n",
    )


def test_the_command_line_loads_no_library_of_the_extra() -> None:
    code = (
        "import sys, listen_finalization.cli.root\n"
        "sys.exit(any(name.partition('.')[0] == 'grpc' for name in sys.modules))"
    )
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 0
