"""`destinations`: where a user's finished conversations are delivered."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.faults import CommandError
from listen_finalization.cli.options import examples, output_option, stored_data, uid_option
from listen_finalization.cli.place import embedded_settings, existing
from listen_finalization.cli.printing import print_json, print_table, say
from listen_finalization.domain.policy import Policy
from listen_finalization.outbox.database import DATABASE
from listen_finalization.outbox.sqlite import SqliteStore
from listen_finalization.processing.addresses import AddressRefusedError, parse_url
from listen_finalization.processing.destinations import Destinations

T = TypeVar("T")


@click.group(short_help="Add, list and remove webhooks.")
def destinations() -> None:
    """Add, list and remove the webhooks of a user. No address is ever printed, hosts alone are."""


@destinations.command(
    epilog=examples(
        "destinations add crm https://hooks.example.com/finished",
        "destinations add crm - < address.txt    # keeps it out of the process list",
    )
)
@click.argument("destination_id", metavar="ID")
@click.argument("url", metavar="URL|-")
@uid_option
@stored_data
@output_option
def add(destination_id: str, url: str, uid: str, data: str | None, output: str) -> None:
    """Add or replace a destination and print its signing secret, this once.

    ID is 1 to 64 of A-Za-z0-9_-. URL is public https; loopback receivers also need
    LISTEN_FINALIZATION_ADMIT_LOOPBACK_DESTINATIONS=true at the stack. Requests are signed in the
    Standard Webhooks form.
    """
    settings = embedded_settings(data)
    address = sys.stdin.readline().strip() if url == "-" else url
    directory = Path(settings.data_dir or ".")
    parse_url(address, admit_loopback=True)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret = _with(directory, lambda found: found.add(uid, destination_id, address))
    if output == "json":
        print_json({"id": destination_id, "uid": uid, "host": _host(address), "secret": secret})
    else:
        say(f"added {destination_id} at {_host(address)} for uid {uid}")
        say(f"signing secret, shown this once: {secret}")
    if _local(address) and not settings.admit_loopback_destinations:
        say(
            "note: deliveries to this machine are refused until the stack runs with "
            "LISTEN_FINALIZATION_ADMIT_LOOPBACK_DESTINATIONS=true",
            to_stderr=True,
        )


@destinations.command("list", epilog=examples("destinations list --uid me -o json"))
@uid_option
@stored_data
@output_option
def list_destinations(uid: str, data: str | None, output: str) -> None:
    """List a user's destinations by id and host."""
    found = _with(existing(data), lambda held: held.of(uid))
    shown = [(one.id, _host(one.url)) for one in found]
    if output == "json":
        print_json({"uid": uid, "destinations": [{"id": i, "host": host} for i, host in shown]})
    else:
        print_table(("ID", "HOST"), shown)


@destinations.command(epilog=examples("destinations remove crm"))
@click.argument("destination_id", metavar="ID")
@uid_option
@stored_data
def remove(destination_id: str, uid: str, data: str | None) -> None:
    """Remove a destination: deliveries that are still owed to it are dropped."""
    if not _with(existing(data), lambda held: held.remove(uid, destination_id)):
        raise CommandError(
            "the user has no destination of this id",
            code=ExitCode.REFUSED,
            remedy="`listen-finalization destinations list` shows the ids; --uid names the user",
            word="destination_unknown",
        )
    say(f"removed {destination_id} of uid {uid}")


def _with(directory: Path, action: Callable[[Destinations], Awaitable[T]]) -> T:
    """Run one action on the records of a directory's store. Makes no key."""

    async def run() -> T:
        store = SqliteStore(directory / DATABASE, Policy())
        try:
            return await action(Destinations(store.records))
        finally:
            store.close()

    return asyncio.run(run())


def _host(url: str) -> str:
    return parse_url(url, admit_loopback=True).authority


def _local(url: str) -> bool:
    try:
        parse_url(url)
    except AddressRefusedError:
        return True
    return False
