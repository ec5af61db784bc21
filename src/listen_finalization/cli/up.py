"""`up`: the whole embedded stack on one port of this machine."""

from __future__ import annotations

import asyncio

import click

from listen_finalization.cli.binding import address_of, bound, loopback
from listen_finalization.cli.options import data_option, examples, uid_option
from listen_finalization.cli.place import embedded_settings, named
from listen_finalization.cli.printing import say


@click.command(
    short_help="Run the whole stack on one port.",
    epilog=examples("up", "up --data ./data --port 0", "up --host 0.0.0.0 --expose"),
)
@data_option("Where everything is kept.  [default: LISTEN_FINALIZATION_DATA_DIR, else ./data]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8080, show_default=True)
@click.option("--expose", is_flag=True, help="Allow a --host that other machines can reach.")
@click.option("--no-token", is_flag=True, help="Print no user token, where stdout is kept.")
@uid_option
def up(data: str | None, host: str, port: int, expose: bool, no_token: bool, uid: str) -> None:
    """Run API, worker, dispatcher and reconciler in one process, until a signal.

    Prints the addresses and a user token for curl to stdout, JSON logs to stderr. User tokens are
    signed by a key in the data directory, and requests are plain HTTP: meant for one machine.
    SIGINT or SIGTERM stops it: requests get 5 s and, at the same time, runs
    LISTEN_FINALIZATION_SHUTDOWN_GRACE_SECONDS; a second signal forces it. It exits with 3 when its
    store breaks, so that it is started anew.
    """
    settings = embedded_settings(data)
    if not (expose or loopback(host)):
        raise click.UsageError("--host can be reached by other machines; allow that with --expose")
    with bound(host, port) as opened:
        from listen_finalization.cli.logs import log_to_stderr
        from listen_finalization.cli.server import serve_stack
        from listen_finalization.stack import Stack

        log_to_stderr()
        stack = Stack(settings)
        base = address_of(opened)
        token = None if no_token else stack.user_token(uid)
        asyncio.run(serve_stack(stack, opened, lambda: _announce(base, named(data), uid, token)))


def _announce(base: str, data: str, uid: str, token: str | None) -> None:
    say(f"listen-finalization is up: {base}")
    say(f"  data       {data}")
    say(f"  readiness  {base}/readyz")
    say(f"  API        {base}/openapi.json")
    if token is None:
        return
    say(f"A token of uid {uid}, good for one hour (`listen-finalization token` prints a new one):")
    say(f"  export LISTEN_USER_TOKEN={token}")
    say("Then, in another terminal:")
    say(f"  listen-finalization finalize FILE --url {base}")
    say(
        f'  curl -H "Authorization: Bearer $LISTEN_USER_TOKEN" '
        f"{base}/v1/conversations/ID/finalization"
    )
