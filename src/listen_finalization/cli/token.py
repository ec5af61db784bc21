"""`token`: a fresh user token of a stack on this machine."""

from __future__ import annotations

import click

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.faults import CommandError
from listen_finalization.cli.options import examples, stored_data, uid_option
from listen_finalization.cli.place import existing, named, setting_of
from listen_finalization.cli.printing import say

_KEY = "users.key.pem"


@click.command(
    short_help="Print a fresh user token.",
    epilog=examples("token --data ./data", "finalize talk.vtt --url http://127.0.0.1:8080"),
)
@uid_option
@stored_data
def token(uid: str, data: str | None) -> None:
    """Print a user token, good for one hour: `export LISTEN_USER_TOKEN=$(... token)`.

    Whoever can read the key in the data directory is every user of that stack. No key is made
    here: the stack that runs on the directory made it.
    """
    directory = existing(data)
    if not (directory / _KEY).is_file():
        raise CommandError(
            f"{named(data)}: no stack has made its keys here yet",
            code=ExitCode.UNAVAILABLE,
            remedy="start `listen-finalization up` on this directory first",
            word="no_key",
        )
    from listen_finalization.auth.issuer import LocalIssuer

    say(LocalIssuer.open(directory, "users").mint_user_token(uid, setting_of("firebase_project")))
