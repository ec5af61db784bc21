"""`dev`: servers for development and tests, on this machine alone."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.extras import google_needed
from listen_finalization.cli.faults import CommandError
from listen_finalization.cli.options import examples
from listen_finalization.cli.printing import say

if TYPE_CHECKING:
    from listen_finalization.testing.cloud_tasks import CloudTasksServer

_PORT = click.IntRange(0, 65_535)


@click.group(
    short_help="Servers for development and tests.", epilog=examples("dev cloud-tasks --port 8123")
)
def dev() -> None:
    """Servers for development and tests, on loopback alone and without any access control."""


@dev.command(
    "cloud-tasks",
    short_help="Run a Cloud Tasks server.",
    epilog=examples(
        "dev cloud-tasks",
        "dev cloud-tasks --port 8123 --queue projects/demo/locations/here/queues/jobs",
        "dev cloud-tasks --port 0 --keys-port 0 --state ./queue.db",
    ),
)
@click.option("--port", type=_PORT, default=8123, show_default=True, help="Port of the gRPC API.")
@click.option(
    "--keys-port", type=_PORT, default=8124, show_default=True, help="Port of keys and faults."
)
@click.option(
    "--queue",
    "queues",
    metavar="NAME",
    multiple=True,
    help="Create this queue: projects/P/locations/L/queues/Q. May be repeated.",
)
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep queues and tasks here, and the key beside it.  [default: in memory]",
)
def cloud_tasks(port: int, keys_port: int, queues: tuple[str, ...], state: Path | None) -> None:
    """Run a Cloud Tasks server for the real client, until a signal.

    It delivers over HTTP as production does, with OIDC tokens signed by a key of its own. GET,
    PUT and DELETE on /faults switch faults on and off, for example:

    \b
    curl -X PUT http://127.0.0.1:8124/faults/refuse -d '{"code": "UNAVAILABLE", "count": 3}'
    curl -X PUT http://127.0.0.1:8124/faults/late -d '{"seconds": 30}'
    curl -X DELETE http://127.0.0.1:8124/faults

    Kinds: refuse, forget, uncertain, silent, twice, late, unordered. Needs the extra `google`.
    """
    asyncio.run(_serve(_server(port, keys_port, queues, state), queues))


def _server(
    port: int, keys_port: int, queues: tuple[str, ...], state: Path | None
) -> CloudTasksServer:
    with google_needed("the Cloud Tasks server"):
        from listen_finalization.testing.cloud_tasks import CallRefusedError, CloudTasksServer
    try:
        return CloudTasksServer(port=port, keys_port=keys_port, queues=queues, state=state)
    except CallRefusedError as refused:
        raise click.BadParameter(str(refused), param_hint="--queue") from refused


async def _serve(server: CloudTasksServer, queues: tuple[str, ...]) -> None:
    from listen_finalization.testing.cloud_tasks.server import PortUnavailableError

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    try:
        async with server:
            _announce(server, queues)
            await _until(stopped, server)
    except PortUnavailableError as fault:
        raise CommandError(
            str(fault),
            code=ExitCode.UNAVAILABLE,
            remedy="stop what uses it, or give another --port or --keys-port (0: any free one)",
            word="port_unavailable",
        ) from fault


async def _until(stopped: asyncio.Event, server: CloudTasksServer) -> None:
    """Wait for a signal, or for the server to fail; its fault is raised."""
    waiting = [asyncio.create_task(stopped.wait()), asyncio.create_task(server.served())]
    done, left = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for one in left:
        one.cancel()
    for one in done:
        one.result()


def _announce(server: CloudTasksServer, queues: tuple[str, ...]) -> None:
    say(f"Cloud Tasks server is up: {server.address}")
    say(f"  keys    {server.keys_url}")
    say(f"  faults  {server.control_url}/faults")
    say("Point this product at it:")
    say(f"  export CLOUD_TASKS_EMULATOR_HOST={server.address}")
    say(f"  export LISTEN_FINALIZATION_GOOGLE_CERTS_URL={server.keys_url}")
    for queue in queues[:1]:
        _, project, _, location, _, name = queue.split("/")
        say(f"  export SYNC_TASKS_PROJECT={project} SYNC_TASKS_LOCATION={location}")
        say(f"  export LISTEN_FINALIZATION_TASKS_QUEUE={name}")
    say("A client of your own in Python:")
    say("  from listen_finalization.dispatch.cloud_tasks import open_client")
    say(f'  client = await open_client("{server.address}")')
