"""Each role starts with the environment that the deploy files give it, and serves its own routes.

The processes are real; the addresses of Firestore and Cloud Tasks lead nowhere, which starting
must survive.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from deploy.deployment import Document, demanded, evaluate, read_settings
from listen_finalization.settings import RECONCILE_PATH, RUN_PATH

NOWHERE = "127.0.0.1:9"
COMMAND = Path(sys.executable).with_name("listen-finalization")


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Document:
    return evaluate(read_settings(), tmp_path_factory.mktemp("production"))


@contextmanager
def served(role: str, environment: dict[str, str]) -> Iterator[str]:
    """Run a role on a free port and give its address; a stop by signal must end it cleanly."""
    demanded("google.cloud.firestore_v1")
    here = {
        "FIRESTORE_EMULATOR_HOST": NOWHERE,
        "CLOUD_TASKS_EMULATOR_HOST": NOWHERE,
        "PATH": os.environ["PATH"],
        "PORT": "0",
    }
    process = subprocess.Popen(
        [COMMAND, "serve", "--role", role],
        env=environment | here,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        told = process.stdout.readline()
        assert told.startswith(f"listen-finalization serves the role {role}: ")
        yield f"http://127.0.0.1:{told.rstrip().rpartition(':')[2]}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("role", "tasks", "customers"), [("api", 404, 401), ("worker", 401, 404), ("live", 404, 404)]
)
def test_a_role_starts_and_serves_its_own_routes(
    production: Document, role: str, tasks: int, customers: int
) -> None:
    with (
        served(role, production["environment"][role]) as address,
        httpx.Client(base_url=address, timeout=30) as client,
    ):
        answers = {
            "/livez": client.get("/livez").status_code,
            RUN_PATH: client.post(RUN_PATH).status_code,
            RECONCILE_PATH: client.post(RECONCILE_PATH).status_code,
            "finalize": client.post("/v1/conversations/first/finalize").status_code,
        }

    assert answers == {
        "/livez": 200,
        RUN_PATH: tasks,
        RECONCILE_PATH: tasks,
        "finalize": customers,
    }
