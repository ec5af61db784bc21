"""`doctor` from the command line: what it prints, what it keeps to itself, how it ends."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from operate.live_project import DATABASE, WORKER, LiveProject, live_project
from operate.test_account import key_file
from rich.console import Console

from listen_finalization.cli import doctor as command
from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.operate import examination
from listen_finalization.operate.findings import Code
from listen_finalization.testing.canary import leaks

from .conftest import Ran

Cli = Callable[..., Ran]
Golden = Callable[[str, str], None]


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveProject]:
    """A project in front of the whole command: its account, its endpoints, its deploy files."""
    monkeypatch.chdir(tmp_path)
    with live_project(tmp_path / "deploy") as made:
        monkeypatch.setattr(examination, "Endpoints", lambda: made.endpoints)
        file = key_file(tmp_path / "key.json", f"{made.rest.url}/token")
        made.env |= {
            "FIRESTORE_EMULATOR_HOST": made.grpc.address,
            "GOOGLE_APPLICATION_CREDENTIALS": str(file),
        }
        yield made


def still(text: str) -> str:
    """Return the output without what differs from run to run: ports, and columns of their width."""
    return re.sub(r" {2,}", "  ", re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text))


def drifted(live: LiveProject) -> None:
    """Let a project drift in every way that the table shows."""
    live.grpc.queue.retry_config.max_attempts = 3
    live.document(WORKER)["invokerIamDisabled"] = False
    live.document(f"{DATABASE}/indexes")["indexes"].pop()
    live.rest.answers[f"{WORKER}:getIamPolicy"] = (403, {"error": {"code": 403}})


def test_a_sound_project_is_shown_as_agreed_and_exits_with_zero(
    live: LiveProject, cli: Cli, golden: Golden
) -> None:
    ran = cli("doctor", env=live.env)
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    golden("doctor", still(ran.out))


def test_findings_are_shown_as_agreed_with_what_to_type_and_exit_with_one(
    live: LiveProject, cli: Cli, golden: Golden
) -> None:
    drifted(live)
    ran = cli("doctor", env=live.env)
    assert (ran.code, ran.err) == (ExitCode.UNFINISHED, "")
    golden("doctor-drifted", still(ran.out))


def test_json_has_every_finding_whole(live: LiveProject, cli: Cli) -> None:
    drifted(live)
    ran = cli("doctor", "-o", "json", env=live.env)
    told = json.loads(ran.out)
    assert (ran.code, told["project"]) == (ExitCode.UNFINISHED, "acme-prod")
    assert [one["code"] for one in told["findings"]] == [
        code for code in Code if code is not Code.RUN_LOCK
    ]
    assert {one["code"]: one for one in told["findings"]}["queue_attempts"] == {
        "code": "queue_attempts",
        "verdict": "failure",
        "expected": "5",
        "found": "3",
        "remedy": "terraform -chdir=deploy/terraform apply "
        '-var settings_file=../production.json -var release="$RELEASE"',
    }


@pytest.mark.parametrize("change", ["unknown", "warning"])
def test_an_unknown_is_no_success_and_a_warning_is(
    change: str, live: LiveProject, cli: Cli
) -> None:
    if change == "unknown":
        live.grpc.refused["GetIamPolicy"] = grpc.StatusCode.PERMISSION_DENIED
    else:
        live.document(f"{WORKER}:getIamPolicy")["bindings"].clear()
    ran = cli("doctor", env=live.env)
    assert ran.code == (ExitCode.UNFINISHED if change == "unknown" else ExitCode.OK)


def test_a_project_of_which_nothing_can_be_looked_at_is_unavailable(
    live: LiveProject, cli: Cli
) -> None:
    nowhere = "127.0.0.1:1"
    env: dict[str, Any] = live.env | {
        "FIRESTORE_EMULATOR_HOST": nowhere,
        "CLOUD_TASKS_EMULATOR_HOST": nowhere,
    }
    for name, value in env.items():
        env[name] = re.sub(r"http://127\.0\.0\.1:\d+", f"http://{nowhere}", value)
    live.rest.answers["/token"] = (400, {"error": "invalid_grant"})
    ran = cli("doctor", "-o", "json", env=env)
    verdicts = {one["code"]: one["verdict"] for one in json.loads(ran.out)["findings"]}
    assert verdicts["queue_found"] == verdicts["worker_found"] == "unknown"
    assert ran.code == ExitCode.UNAVAILABLE


def test_no_text_of_a_setting_and_no_refusal_is_ever_printed(live: LiveProject, cli: Cli) -> None:
    prefix = "LISTEN_FINALIZATION_"
    secrets = {
        "password": "canary0password0f3a1",
        "audience": "canary0audience04b77",
        "queue": "canary0queue0c2d9",
        "account": "canary0account0aa31@x.example",
        "project": "canary0project0b1e2",
        "database": "canary0database0d4c1",
        "token": "canary-token-5d20",
        "refusal": "canary-refusal-19ab",
    }
    live.grpc.refused["GetQueue"] = grpc.StatusCode.PERMISSION_DENIED
    env = live.env | {
        f"{prefix}RUN_LOCK_URL": f"redis://:{secrets['password']}@127.0.0.1:1/0",
        f"{prefix}TASKS_OIDC_AUDIENCE": secrets["audience"],
        f"{prefix}TASKS_QUEUE": secrets["queue"],
        f"{prefix}TASKS_INVOKER_SA": secrets["account"],
        f"{prefix}FIRESTORE_PROJECT": secrets["project"],
        f"{prefix}FIRESTORE_DATABASE": secrets["database"],
    }
    for output in ("table", "json"):
        ran = cli("doctor", "-o", output, env=env)
        assert ran.code == ExitCode.UNFINISHED
        assert "TASKS_OIDC_AUDIENCE is another" in ran.out
        assert leaks(secrets, {"out": ran.out, "err": ran.err}) == []


def test_deploy_files_that_are_not_there_are_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    ran = cli("doctor", "--deploy", tmp_path / "nowhere")
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert ran.err.splitlines() == [
        f"error: {tmp_path / 'nowhere' / 'production.json'} cannot be read",
        "next:  name the deploy files with --deploy and --environment",
    ]


def test_progress_is_one_line_and_only_where_a_person_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = io.StringIO()
    terminal = Console(file=drawn, force_terminal=True, width=80, _environ={"TERM": "xterm"})
    monkeypatch.setattr(command, "console", lambda _: terminal)
    with command._progress(3) as noted:
        noted("queue")
        assert command._line(["queue"], 3).plain == "looked at 1 of 3: queue"
    assert "looked at 1 of 3: queue" in drawn.getvalue()
    silent = io.StringIO()
    monkeypatch.setattr(command, "console", lambda _: Console(file=silent))
    with command._progress(3) as noted:
        noted("queue")
    assert silent.getvalue() == ""
