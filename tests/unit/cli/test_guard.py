"""Every fault ends as short lines and an exit code; no exception's text is ever printed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click
import pytest

from listen_finalization import errors
from listen_finalization.cli import faults
from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.main import MISSING, main
from listen_finalization.cli.root import root

from .conftest import Ran

Cli = Callable[..., Ran]
SECRET = "canary-in-an-exception-77f0"


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Return what adds a command `fault` that raises."""

    def add(fault: BaseException) -> None:
        @click.command("fault")
        def command() -> None:
            raise fault

        monkeypatch.setitem(root.commands, "fault", command)

    return add


def every_error(base: type[Exception] = errors.ListenFinalizationError) -> set[type[Exception]]:
    found = {base}
    for one in base.__subclasses__():
        found |= every_error(one)
    return found


def test_every_fault_of_ours_has_an_exit_code_and_a_next_step() -> None:
    for kind in every_error() - {faults.CommandError}:
        if kind.__module__.startswith("listen_finalization"):
            fault = kind.__new__(kind)
            fault.args = ("what is wrong",)
            told = faults.told(fault)  # type: ignore[arg-type]
            assert told.code in set(ExitCode) - {ExitCode.OK}
            assert told.lines == ("what is wrong",)
            assert told.remedy
            assert told.word.replace("_", "").islower()


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (errors.StoreBusyError(), ExitCode.UNAVAILABLE),
        (errors.StoreBrokenError(), ExitCode.UNAVAILABLE),
        (errors.SettingsError(), ExitCode.USAGE),
        (errors.ConversationClosedError(), ExitCode.REFUSED),
        (PermissionError(13, "Permission denied", SECRET), ExitCode.UNAVAILABLE),
        (RuntimeError(SECRET), ExitCode.DEFECT),
        (ExceptionGroup(SECRET, [ValueError(SECRET)]), ExitCode.DEFECT),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_fault_is_told_in_short_lines(
    fault: BaseException, code: ExitCode, cli: Cli, raising: Callable[[BaseException], None]
) -> None:
    raising(fault)
    ran = cli("fault")
    assert (ran.code, ran.out) == (code, "")
    error, remedy = ran.err.strip().splitlines()
    assert error.startswith("error: ")
    assert remedy.startswith("next:  ")
    assert SECRET not in ran.err
    assert "Traceback" not in ran.err


def test_an_unexpected_exception_is_told_by_its_class_alone(
    cli: Cli, raising: Callable[[BaseException], None]
) -> None:
    raising(ValueError(SECRET))
    assert cli("fault").err.splitlines()[0] == "error: unexpected ValueError"


@pytest.mark.parametrize(
    "arguments",
    [("bogus",), ("jobs", "list", "--limit", "0"), ("finalize",), ("up", "--port", "x"), ("-q",)],
)
def test_a_command_line_that_cannot_be_used_is_a_usage_error(
    arguments: tuple[str, ...], cli: Cli
) -> None:
    ran = cli(*arguments)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert len(ran.err.splitlines()) == 2


def test_a_hostile_argument_is_repeated_harmlessly(cli: Cli) -> None:
    ran = cli("\x1b[31mred\u202e")
    assert ran.code == ExitCode.USAGE
    assert "\\x1b[31mred\\u202e" in ran.err
    assert "\x1b" not in ran.err


def test_every_wrong_setting_is_one_clear_line(cli: Cli) -> None:
    env = {"LISTEN_FINALIZATION_SLOTZ": SECRET, "LISTEN_FINALIZATION_SLOTS": "4.0"}
    ran = cli("up", "--port", "0", env=env)
    assert ran.code == ExitCode.USAGE
    assert ran.err.splitlines() == [
        "error: LISTEN_FINALIZATION_SLOTZ is not a setting; is it LISTEN_FINALIZATION_SLOTS?",
        "error: LISTEN_FINALIZATION_SLOTS must be a whole number from 1 to 64 in digits",
        "next:  correct the environment; `listen-finalization check` shows every setting",
    ]


@pytest.mark.parametrize("mode", ["inline", "cloud_tasks"])
def test_a_stack_of_this_process_refuses_another_mode(mode: str, cli: Cli) -> None:
    ran = cli("up", "--port", "0", env={"LISTEN_FINALIZATION_DISPATCH_MODE": mode})
    assert ran.code == ExitCode.USAGE


def test_a_missing_library_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    modules: Any = sys.modules
    monkeypatch.delitem(modules, "listen_finalization.cli.guard")
    monkeypatch.setitem(modules, "click", None)
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == ExitCode.USAGE
    assert capsys.readouterr().err == MISSING


def test_a_missing_library_of_one_command_is_told_the_same_way(
    cli: Cli, raising: Callable[[BaseException], None]
) -> None:
    raising(ModuleNotFoundError(SECRET, name="uvicorn"))
    ran = cli("fault")
    assert (ran.code, ran.err) == (ExitCode.USAGE, MISSING)


def test_a_missing_module_of_our_own_is_a_defect(
    cli: Cli, raising: Callable[[BaseException], None]
) -> None:
    raising(ModuleNotFoundError(SECRET, name="listen_finalization.nowhere"))
    assert cli("fault").code == ExitCode.DEFECT
