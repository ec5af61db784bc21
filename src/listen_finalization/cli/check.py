"""`check`: every setting with value and source, every inequality with its numbers."""

from __future__ import annotations

import os
from typing import Any

import click

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.faults import told
from listen_finalization.cli.options import examples, output_option
from listen_finalization.cli.place import MODE
from listen_finalization.cli.printing import complain, print_json, print_table, say
from listen_finalization.domain.budgets import DispatchMode
from listen_finalization.errors import SettingsError
from listen_finalization.settings import Settings


@click.command(
    short_help="Show every setting and every inequality.",
    epilog=examples("check", "check --embedded -o json"),
)
@click.option(
    "--embedded", is_flag=True, help="Read them as `up` does: embedded where no mode is set."
)
@output_option
def check(embedded: bool, output: str) -> int:
    """Show every setting and every inequality, and say whether they can work.

    Free text is masked unless it is the default. Exits 1 when something is wrong; the errors then
    name it, with the numbers of a broken inequality and no other value.
    """
    defaults = {MODE: DispatchMode.EMBEDDED.value} if embedded else None
    try:
        settings = Settings.from_environment(os.environ, defaults=defaults)
    except SettingsError as fault:
        return _refused(fault, output)
    if output == "json":
        print_json(_document(settings))
    else:
        _tables(settings)
    return ExitCode.OK


def _refused(fault: SettingsError, output: str) -> ExitCode:
    faults = told(fault).lines
    if output == "json":
        print_json({"ok": False, "faults": list(faults), "settings": [], "inequalities": []})
    complain(faults, "correct the environment and check again")
    return ExitCode.UNFINISHED


def _document(settings: Settings) -> dict[str, Any]:
    inequalities = [
        {
            "left": {"name": str(one.left.label or one.left.setting), "value": one.left.value},
            "relation": one.relation,
            "right": {"name": str(one.right.label or one.right.setting), "value": one.right.value},
            "holds": one.holds,
        }
        for one in settings.inequalities()
    ]
    described = [one._asdict() for one in settings.described()]
    return {"ok": True, "faults": [], "settings": described, "inequalities": inequalities}


def _tables(settings: Settings) -> None:
    print_table(("SETTING", "VALUE", "SOURCE"), settings.described())
    say()
    rows = [("holds" if one.holds else "BROKEN", one.text) for one in settings.inequalities()]
    print_table(("", "INEQUALITY (seconds)"), rows)
