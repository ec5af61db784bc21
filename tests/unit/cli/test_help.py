"""What `--help` says: golden texts, examples everywhere, exit codes from their one table."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

import click
import pytest

from listen_finalization.cli.exit_codes import MEANINGS, ExitCode
from listen_finalization.cli.jobs import typed
from listen_finalization.cli.root import root
from listen_finalization.domain.explain import Next

from .conftest import Ran
from .jobs_at_hand import QUEUED

Cli = Callable[..., Ran]


def commands(group: click.Group, *above: str) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield (*above, name)
        if isinstance(command, click.Group):
            yield from commands(command, *above, name)


EVERY = [(), *commands(root)]


@pytest.mark.parametrize("path", EVERY, ids=lambda path: "-".join(path) or "root")
def test_the_help_of_every_command_is_as_agreed(
    path: tuple[str, ...], cli: Cli, golden: Callable[[str, str], None]
) -> None:
    ran = cli(*path, "--help")
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    golden("-".join(("help", *path)), ran.out)


@pytest.mark.parametrize("path", EVERY, ids=lambda path: "-".join(path) or "root")
def test_every_command_has_examples(path: tuple[str, ...], cli: Cli) -> None:
    text = cli(*path, "--help").out
    assert "listen-finalization" in text.partition("Examples:")[2] or path in {
        ("jobs",),
        ("destinations",),
    }


@pytest.mark.parametrize("path", [(), ("finalize",)])
def test_the_help_lists_every_exit_code_from_the_one_table(path: tuple[str, ...], cli: Cli) -> None:
    text = cli(*path, "--help").out
    for code, meaning in MEANINGS.items():
        assert f"{code.value:>3}  {meaning}" in text


def test_every_exit_code_has_a_meaning() -> None:
    assert set(MEANINGS) == set(ExitCode)


@pytest.mark.parametrize("following", [one for one in Next if one])
def test_explain_names_only_commands_that_exist(following: Next) -> None:
    program, *words = shlex.split(typed(following, QUEUED, "/a data/dir"))
    assert program == "listen-finalization"
    command: click.Command = root
    context = click.Context(root)
    while isinstance(command, click.Group):
        _, found, words = command.resolve_command(context, words)
        assert found is not None
        command = found
    command.make_context("x", words)


def test_the_version_is_that_of_the_package(cli: Cli) -> None:
    from importlib.metadata import version

    assert cli("--version").out == f"listen-finalization {version('listen-finalization')}\n"


def test_no_command_at_all_shows_the_help(cli: Cli) -> None:
    ran = cli()
    assert ran.code == ExitCode.USAGE
    assert "Commands:" in ran.err
