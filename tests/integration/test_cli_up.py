"""The command line as real processes: a stack that is up, the commands beside it, signals."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from listen_finalization.cli.guard import run

ROOT = Path(__file__).parents[2]
EXAMPLES = (ROOT / "examples/standup.vtt", ROOT / "examples/doctor-visit.json")
COMMAND = (sys.executable, "-m", "listen_finalization.cli.main")
SLOW = {
    "LISTEN_FINALIZATION_PROCESSOR": "cli.processors:Slow",
    "LISTEN_FINALIZATION_SHUTDOWN_GRACE_SECONDS": "1",
    "PYTHONPATH": str(ROOT / "tests/unit"),
}


def environment(**more: str) -> dict[str, str]:
    held = {k: v for k, v in os.environ.items() if "LISTEN" not in k and "SYNC_TASKS" not in k}
    return {**held, "PYTHONDONTWRITEBYTECODE": "1", **more}


def command(*words: Any, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(**env),
    )


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Put back what a command in this process changes for good."""
    root = logging.getLogger()
    held = (logging.raiseExceptions, logging.lastResort, list(root.handlers))
    hooks = (threading.excepthook, sys.unraisablehook)
    yield
    logging.raiseExceptions, logging.lastResort, root.handlers = held
    threading.excepthook, sys.unraisablehook = hooks


def here(*words: Any) -> tuple[int, str, str]:
    """Run a command in this process, which is another one than the stack's."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(word) for word in words])
    return code, out.getvalue(), err.getvalue()


def beside(*words: Any) -> str:
    code, out, err = here(*words)
    assert code == 0, err
    return out


def shown(*words: Any) -> Any:
    return json.loads(beside(*words, "-o", "json"))


class Up:
    """A running `up`, its address and its token as it printed them."""

    def __init__(self, data: Path, env: dict[str, str]) -> None:
        self.data = data
        self.log = data.parent / f"{data.name}.log"
        self.process = subprocess.Popen(
            [*COMMAND, "up", "--data", str(data), "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=self.log.open("w"),
            text=True,
            env=environment(**env),
        )
        self.lines = self._banner()
        self.url = self.lines[0].rpartition(" ")[2]
        exported = next(line for line in self.lines if "LISTEN_USER_TOKEN=" in line)
        self.token = exported.partition("=")[2]

    def _banner(self) -> list[str]:
        assert self.process.stdout is not None
        stream, lines = self.process.stdout, queue.SimpleQueue[str]()

        def pump() -> None:
            for line in stream:
                lines.put(line)

        threading.Thread(target=pump, daemon=True).start()
        found: list[str] = []
        while not found or "curl" not in found[-1]:
            found.append(lines.get(timeout=60).rstrip())
        return found

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Callable[..., Up]]:
    with contextlib.ExitStack() as stack:

        def start(name: str = "data", **env: str) -> Up:
            started = Up(tmp_path / name, env)
            stack.callback(started.process.wait)
            stack.callback(started.process.kill)
            return started

        yield start


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Yield a stack for the tests that leave it running."""
    started = Up(tmp_path_factory.mktemp("shared") / "data", {})
    yield started
    started.process.kill()
    started.process.wait()


def test_files_are_finalized_by_a_running_stack_and_watched_beside_it(
    up: Callable[..., Up],
) -> None:
    running = up()
    remote = command(
        *("finalize", *EXAMPLES, "--url", running.url, "-o", "json"),
        LISTEN_USER_TOKEN=running.token,
    )
    assert remote.returncode == 0, remote.stderr
    records = json.loads(remote.stdout)
    assert [one["outcome"] for one in records] == ["success", "success"]
    for path in EXAMPLES:
        assert f"{path}: done" in remote.stderr

    ran = command("jobs", "list", "--data", running.data, "-o", "json")
    listed = json.loads(ran.stdout)["jobs"]
    assert {job["job_id"] for job in listed} == {one["job_id"] for one in records}
    key = records[0]["job_id"]
    assert shown("jobs", "show", key, "--data", running.data)["status"] == "completed"
    verbs = [x["verb"] for x in shown("jobs", "history", key, "--data", running.data)["history"]]
    assert verbs == ["admit", "claim", "complete"]
    assert shown("jobs", "explain", key, "--data", running.data)["next_command"] is None

    fresh = beside("token", "--data", running.data).strip()
    asked = urllib.request.Request(
        f"{running.url}/v1/conversations/standup/finalization",
        headers={"Authorization": f"Bearer {fresh}"},
    )
    with urllib.request.urlopen(asked, timeout=10) as answer:
        assert json.load(answer)["status"] == "completed"

    assert running.stop() == 0
    log = running.log.read_text()
    events = [json.loads(line) for line in log.splitlines()]
    assert {"job_admitted", "job_completed"} <= {event.get("event") for event in events}
    assert all({"time", "level", "logger"} <= set(event) for event in events)
    for said in ("payment", "penicillin", running.token.split(".")[2]):
        assert said not in log
    assert not list((running.data / "processes").glob("*.lock"))


@pytest.mark.xdist_group("cli_shared")
def test_a_second_process_finalizes_through_the_directory(shared: Up) -> None:
    assert shown("finalize", EXAMPLES[0], "--data", shared.data)[0]["status"] == "completed"
    assert shared.process.poll() is None


@pytest.mark.xdist_group("cli_shared")
def test_a_taken_port_and_a_wrong_token_are_told_in_two_lines(
    shared: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = shared.url.rpartition(":")[2]
    taken = command("up", "--data", tmp_path / "other", "--port", port)
    assert (taken.returncode, len(taken.stderr.splitlines())) == (3, 2)
    assert f"port {port} of 127.0.0.1 cannot be used" in taken.stderr
    assert not (tmp_path / "other").exists()

    wrong = "canary.of.token"
    monkeypatch.setenv("LISTEN_USER_TOKEN", wrong)
    code, out, err = here("finalize", EXAMPLES[0], "--url", shared.url)
    assert code == 4
    assert wrong not in out + err

    code, _, err = here("finalize", EXAMPLES[0], "--url", "http://127.0.0.1:1")
    assert code == 3
    assert "cannot be reached" in err


def test_other_machines_are_let_in_only_when_asked_for() -> None:
    ran = command("up", "--host", "0.0.0.0", "--port", "0")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--expose" in ran.stderr


def leased(data: Path) -> Any:
    """Wait until a worker owns the one job, and return it."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        found = shown("jobs", "list", "--data", data, "--status", "leased")["jobs"]
        if found:
            return found[0]
        time.sleep(0.05)
    raise AssertionError("no job was claimed")


def admit(running: Up) -> None:
    """Leave a file with the stack without waiting for it."""
    words = ("finalize", EXAMPLES[0], "--url", running.url, "--token", running.token)
    code, _, err = here(*words, "--timeout", "2")
    assert code == 1, err


def test_a_signal_gives_open_runs_back_within_the_grace_time(up: Callable[..., Up]) -> None:
    running = up(**SLOW)
    admit(running)
    job = leased(running.data)
    explained = shown("jobs", "explain", job["job_id"], "--data", running.data)
    assert explained["reasons"][0]["reason"] == "running"
    began = time.monotonic()
    assert running.stop() == 0
    assert time.monotonic() - began < 15
    after = shown("jobs", "explain", job["job_id"], "--data", running.data)
    assert (after["status"], after["reasons"][0]["reason"]) == ("queued", "nobody_dispatches")
    assert after["next_command"].startswith("listen-finalization up ")


def test_a_second_signal_forces_the_end_and_the_next_start_takes_over(
    up: Callable[..., Up],
) -> None:
    running = up(**{**SLOW, "LISTEN_FINALIZATION_SHUTDOWN_GRACE_SECONDS": "60"})
    admit(running)
    job = leased(running.data)
    running.process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert running.process.poll() is None
    assert running.stop(signal.SIGINT) == 130
    assert shown("jobs", "explain", job["job_id"], "--data", running.data)["reasons"][1] == {
        "reason": "owner_dead",
        "code": None,
        "at": None,
        "count": None,
        "advice": None,
        "sentence": "The process that owned it is dead; it is taken over at once.",
    }
    again = up()
    ends = time.monotonic() + 60
    while shown("jobs", "show", job["job_id"], "--data", again.data)["status"] != "completed":
        assert time.monotonic() < ends
        time.sleep(0.1)


def test_the_process_ends_when_its_store_goes(up: Callable[..., Up]) -> None:
    running = up()
    (running.data / "listen.db").unlink()
    assert running.process.wait(timeout=60) == 3
    assert "error: The store cannot be trusted any more." in running.log.read_text()


def test_a_terminated_finalize_leaves_no_content_behind(tmp_path: Path) -> None:
    env = environment(**SLOW, TMPDIR=str(tmp_path))
    process = subprocess.Popen(
        [*COMMAND, "finalize", str(EXAMPLES[0])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    assert process.stderr is not None
    while "claimed" not in process.stderr.readline():
        assert process.poll() is None
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert (out, "Traceback" in err) == ("", False)
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_ends_a_command_quietly() -> None:
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(
        [*COMMAND, "check"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        env=environment(),
    )
    os.close(write)
    assert (ran.returncode, ran.stderr) == (0, "")
