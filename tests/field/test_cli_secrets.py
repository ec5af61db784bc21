"""cli-secrets: no command prints a setting's text, a key, an address or what people said.

Records of finished conversations go to stdout, since that is what `finalize` and `demo` are asked
for; signing secrets and user tokens go there once, where a command is asked for one.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.root import root
from listen_finalization.settings import SETTINGS, Settings
from listen_finalization.testing.canary import canary, leaks

from .command import cli

CANARIES = {name: canary(name) for name in ("spoken", "token", "fault", "address")}
DEPLOY = Path(__file__).parents[2] / "deploy"
IN_SETTINGS = {one.name: canary(f"s{number}") for number, one in enumerate(SETTINGS)}
WELL_FORMED = {
    "LISTEN_FINALIZATION_TASKS_QUEUE": "canary-queue-71c0d4e58b2f",
    "LISTEN_FINALIZATION_TASKS_HANDLER_URL": "https://canary71c0d4e58b30.example"
    "/v1/conversation-finalization-jobs/run",
    "LISTEN_FINALIZATION_TASKS_OIDC_AUDIENCE": "canary71c0d4e58b31",
    "LISTEN_FINALIZATION_TASKS_INVOKER_SA": "canary71c0d4e58b32@x.example",
    "SYNC_TASKS_PROJECT": "canary71c0d4e58b33",
    "SYNC_TASKS_LOCATION": "canary71c0d4e58b34",
    "LISTEN_FINALIZATION_GOOGLE_CERTS_URL": "https://canary71c0d4e58b35.example/certs",
    "LISTEN_FINALIZATION_FIREBASE_CERTS_URL": "https://canary71c0d4e58b36.example/certs",
}


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [one.name for one in SETTINGS]:
        monkeypatch.delenv(name, raising=False)
    logger = logging.getLogger()
    held = (logging.raiseExceptions, logging.lastResort, list(logger.handlers))
    hooks = (threading.excepthook, sys.unraisablehook)
    yield
    logging.raiseExceptions, logging.lastResort, logger.handlers = held
    threading.excepthook, sys.unraisablehook = hooks


def transcript(path: Path) -> Path:
    said = f"I will send {CANARIES['spoken']} to the customer by tomorrow evening."
    path.write_text(json.dumps({"segments": [{"text": said}]}))
    return path


def every_command() -> list[tuple[str, ...]]:
    def below(group: click.Group, *above: str) -> Iterator[tuple[str, ...]]:
        for name, command in group.commands.items():
            if isinstance(command, click.Group):
                yield from below(command, *above, name)
            else:
                yield (*above, name)

    return list(below(root))


def deployed(directory: Path) -> Path:
    """Return deploy files of a project that has a name."""
    files = directory / "deploy"
    shutil.copytree(DEPLOY, files)
    settings = files / "production.json"
    settings.write_text(settings.read_text("utf-8").replace("your-project-id", "example-project"))
    return files


def arguments(path: tuple[str, ...], file: Path) -> list[str]:
    """Return what makes a command run as far as its settings and its store."""
    more: dict[tuple[str, ...], list[str]] = {
        ("jobs", "show"): ["x"],
        ("jobs", "history"): ["x"],
        ("jobs", "explain"): ["x"],
        ("finalize",): [str(file)],
        ("demo",): [str(file)],
        ("destinations", "add"): ["crm", "https://hooks.example.com/x"],
        ("destinations", "remove"): ["crm"],
        ("up",): ["--port", "0"],
        ("dev", "cloud-tasks"): ["--port", "0"],
        ("doctor",): ["--deploy", str(file.parent / "deploy")],
    }
    if path == ("doctor",):
        deployed(file.parent)
    return [*path, *more.get(path, [])]


@pytest.mark.parametrize("path", every_command(), ids="-".join)
def test_no_setting_is_printed_when_all_of_them_are_broken(
    path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in IN_SETTINGS.items():
        monkeypatch.setenv(name, text)
    words = arguments(path, transcript(tmp_path / "talk.json"))
    if path == ("dev", "cloud-tasks"):
        words += ["--state", str(tmp_path)]  # it reads no setting: what is no file ends it
    ran = cli(*words)
    assert ran.code not in (ExitCode.OK, ExitCode.DEFECT)
    assert leaks(IN_SETTINGS | CANARIES, {"out": ran.out, "err": ran.err}) == []
    assert "Traceback" not in ran.err


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("path", every_command(), ids="-".join)
def test_a_crash_is_told_by_its_class(
    path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: Any, **__: Any) -> None:
        for one in _:
            if asyncio.iscoroutine(one):
                one.close()
        raise RuntimeError(CANARIES["fault"])

    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "listen.db").touch()
    (tmp_path / "data" / "users.key.pem").touch()
    monkeypatch.setattr(asyncio, "run", crash)
    if path in {("check",), ("up",), ("doctor",)}:
        monkeypatch.setattr(Settings, "from_environment", crash)
    if path == ("token",):
        monkeypatch.setattr("listen_finalization.auth.issuer.LocalIssuer.open", crash)
    ran = cli(*arguments(path, transcript(tmp_path / "talk.json")))
    assert (ran.code, ran.out) == (ExitCode.DEFECT, ""), ran.err
    assert ran.err.splitlines()[0] == "error: unexpected RuntimeError"
    assert leaks(CANARIES, {"err": ran.err}) == []


def test_a_whole_working_day_shows_content_only_where_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, file = tmp_path / "canary71c0d4e58b37", transcript(tmp_path / "talk.json")
    settings = {**WELL_FORMED, "LISTEN_FINALIZATION_DATA_DIR": str(data)}
    for name, text in settings.items():
        monkeypatch.setenv(name, text)
    url = "https://hooks.example.com/71c0d4e58b38abcd"
    ran = {
        "check": cli("check", "--embedded"),
        "check json": cli("check", "--embedded", "-o", "json"),
        "before": cli("jobs", "list"),
        "no key": cli("token"),
        "add": cli("destinations", "add", "crm", url),
        "remove first": cli("destinations", "remove", "crm"),
        "finalize": cli("finalize", file, "--force-process", "-v", "--data", data),
    }
    listed = cli("jobs", "list", "-o", "json")
    key = json.loads(listed.out)["jobs"][0]["job_id"]
    ran |= {"list json": listed, "list": cli("jobs", "list")}
    for verb in ("show", "history", "explain"):
        ran[verb] = cli("jobs", verb, key)
        ran[f"{verb} json"] = cli("jobs", verb, key, "-o", "json")
    assert ran["finalize"].code == ExitCode.OK
    assert {one.code for name, one in ran.items() if name not in ("before", "no key")} == {0}

    texts = {**CANARIES, "settings and addresses": "71c0d4e58b"}
    shown = {f"{name} err": one.err for name, one in ran.items()}
    shown |= {f"{name} out": one.out for name, one in ran.items() if name != "finalize"}
    assert leaks(texts, shown) == []


def test_a_token_is_in_no_message_of_the_command_that_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = transcript(tmp_path / "talk.json")
    monkeypatch.setenv("LISTEN_USER_TOKEN", "token71c0d4e58b39abcd")
    for url in ("http://127.0.0.1:1", "http://user:71c0d4e58b40abcd@127.0.0.1:1"):
        ran = cli("finalize", file, "--url", url)
        assert ran.code in (ExitCode.UNAVAILABLE, ExitCode.USAGE)
        assert "71c0d4e58b" not in ran.out + ran.err
        assert leaks(CANARIES, {"out": ran.out, "err": ran.err}) == []


def test_shell_completion_tells_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in IN_SETTINGS.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("_LISTEN_FINALIZATION_COMPLETE", "bash_source")
    ran = cli()
    assert "_LISTEN_FINALIZATION_COMPLETE=bash_complete" in ran.out
    assert leaks(IN_SETTINGS, {"out": ran.out, "err": ran.err}) == []
