"""`serve`: one role of the production stack on one port."""

from __future__ import annotations

import asyncio
import os
import socket

import click

from listen_finalization.cli.binding import address_of, bound
from listen_finalization.cli.options import examples
from listen_finalization.cli.printing import say
from listen_finalization.settings import Settings

ROLES = ("api", "worker", "live", "all")
"""The words of `stack.production.Role`, whose module is too heavy to be loaded for a help text."""


@click.command(
    short_help="Run one role of the production stack.",
    epilog=examples(
        "serve --role api", "serve --role worker --port 8080", "serve --host 127.0.0.1"
    ),
)
@click.option("--role", type=click.Choice(ROLES), default="all", show_default=True)
@click.option("--host", default="0.0.0.0", show_default=True, help="Address to listen on.")  # noqa: S104
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8080,
    show_default=True,
    envvar="PORT",
    show_envvar=True,
)
def serve(role: str, host: str, port: int) -> None:
    """Run one role over Firestore, until a signal.

    \b
    api     customer routes, and rounds of the reconciler
    worker  the task route that Cloud Tasks calls, and rounds of the reconciler
    live    the pusher's process: in the inline mode it runs due jobs itself
    all     everything in one process

    Settings come from the environment; `check` shows them. JSON logs go to stderr. SIGINT or
    SIGTERM stops it: requests get 5 s and, at the same time, runs
    LISTEN_FINALIZATION_SHUTDOWN_GRACE_SECONDS; a second signal forces it. One machine without
    Google Cloud is served by `up`.
    """
    settings = Settings.from_environment(os.environ)
    with bound(host, port) as opened:
        from listen_finalization.cli.logs import log_to_stderr

        log_to_stderr()
        asyncio.run(_serve(settings, role, opened))


async def _serve(settings: Settings, role: str, opened: socket.socket) -> None:
    from listen_finalization.cli.server import serve_stack
    from listen_finalization.stack.production import Production, Role

    stack = await Production.open(settings, Role(role))
    await serve_stack(stack, opened, lambda: _announce(role, opened))


def _announce(role: str, opened: socket.socket) -> None:
    say(f"listen-finalization serves the role {role}: {address_of(opened)}")
