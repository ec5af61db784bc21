"""`serve`: what it refuses before it serves, and that it serves until it is told to stop."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from listen_finalization.cli.serve import ROLES
from listen_finalization.stack.production import Role

PREFIX = "LISTEN_FINALIZATION_"
INLINE = {f"{PREFIX}FIREBASE_PROJECT": "people", f"{PREFIX}FIRESTORE_PROJECT": "people"}
NOWHERE = {"FIRESTORE_EMULATOR_HOST": "127.0.0.1:1"}


def test_the_roles_of_the_command_line_are_those_of_the_product() -> None:
    assert tuple(Role) == ROLES


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "listen_finalization.cli.main", "serve", *arguments]


def served(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("--host", "127.0.0.1", *arguments),
        env={"PATH": os.environ["PATH"], **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("env", "arguments", "code", "said"),
    [
        ({f"{PREFIX}DISPATCH_MODE": "embedded"}, (), 2, "run by `listen-finalization up`"),
        (INLINE, ("--role", "worker"), 2, "the role worker needs"),
        ({}, ("--role", "api"), 2, f"the role api needs {PREFIX}FIRESTORE_PROJECT"),
        (INLINE, ("--role", "pusher"), 2, "'pusher' is not one of"),
        ({**INLINE, "PORT": "http"}, (), 2, "'http' is not a valid integer"),
    ],
)
def test_what_cannot_serve_is_refused_with_a_next_step(
    env: dict[str, str], arguments: tuple[str, ...], code: int, said: str
) -> None:
    ended = served({**NOWHERE, **env}, *arguments, *(() if "PORT" in env else ("--port", "0")))
    assert ended.returncode == code, ended.stderr
    assert said in ended.stderr
    assert "\nnext:  " in ended.stderr
    assert "Traceback" not in ended.stderr


def test_without_an_account_of_google_it_says_how_to_get_one() -> None:
    away = {"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere.json"}
    ended = served({**INLINE, **away}, "--role", "api", "--port", "0")
    assert ended.returncode == 3, ended.stderr
    assert "There is no account to call Google Cloud with." in ended.stderr
    assert "gcloud auth application-default login" in ended.stderr
    assert "/nowhere.json" not in ended.stderr


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = str(held.getsockname()[1])
        ended = served({**INLINE, **NOWHERE}, "--port", port)
    assert f"port {port} of 127.0.0.1 cannot be used" in ended.stderr


def test_it_serves_on_the_port_of_the_environment_and_ends_at_a_signal() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = str(held.getsockname()[1])
    env = {"PATH": os.environ["PATH"], "PORT": port, **INLINE, **NOWHERE}
    with subprocess.Popen(
        command("--role", "live", "--host", "127.0.0.1"),
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == f"listen-finalization serves the role live: http://127.0.0.1:{port}\n"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=10) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in errors
