"""Google's Firestore emulator for the length of a test run: started, awaited, ended.

`python -m listen_finalization.testing.firestore_emulator` says whether this machine has it.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from listen_finalization.errors import ListenFinalizationError

_JAR = Path("platform/cloud-firestore-emulator/cloud-firestore-emulator.jar")
_MAIN = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
_PATIENCE = 60.0
"""Seconds until an emulator that does not answer is given up; a free machine needs 1.5."""

_ENDING = 10.0
"""Seconds until an emulator that was asked to end is killed."""


class EmulatorMissingError(ListenFinalizationError):
    """The Firestore emulator is missing: gcloud components install cloud-firestore-emulator."""


class EmulatorSilentError(ListenFinalizationError):
    """The Firestore emulator ended or did not answer in time."""


def emulator_command(port: int) -> list[str]:
    """Return the command that runs the emulator on a port of loopback.

    It is java itself: through gcloud, an orphan remains. Raises `EmulatorMissingError` where
    gcloud, its emulator component or java is missing.
    """
    gcloud, java = shutil.which("gcloud"), shutil.which("java")
    if gcloud is None:
        raise EmulatorMissingError("the Firestore emulator needs the gcloud command, not found")
    if java is None:
        raise EmulatorMissingError("the Firestore emulator needs java, not found")
    jar = _sdk_root(gcloud) / _JAR
    if not jar.is_file():
        raise EmulatorMissingError
    memory, place = ["-Xmx1g", "-Duser.language=en"], ["--host=127.0.0.1", f"--port={port}"]
    return [java, *memory, "-cp", str(jar), _MAIN, "start", *place]


def _sdk_root(gcloud: str) -> Path:
    asked = [gcloud, "info", "--format=value(installation.sdk_root)"]
    told = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603
    if told.returncode != 0:
        raise EmulatorMissingError("gcloud did not say where its SDK lies")
    return Path(told.stdout.strip())


@contextmanager
def firestore_emulator() -> Iterator[str]:
    """Run an emulator and give its `host:port`; its data ends with it.

    Set `FIRESTORE_EMULATOR_HOST` to it before a client is made; a project id of its own isolates
    each test. Raises `EmulatorMissingError` and `EmulatorSilentError`.
    """
    port = _free_port()
    command = emulator_command(port)
    with subprocess.Popen(  # noqa: S603 -- java and a jar of the SDK
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            _await_answer(process, port)
            yield f"127.0.0.1:{port}"
        finally:
            _end(process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await_answer(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + _PATIENCE
    while not _answers(port):
        if process.poll() is not None or time.monotonic() > end:
            raise EmulatorSilentError
        time.sleep(0.05)


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_ENDING)
    except subprocess.TimeoutExpired:
        process.kill()


def _main() -> int:
    try:
        emulator_command(1)
    except EmulatorMissingError as missing:
        sys.stderr.write(f"error: {missing}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
