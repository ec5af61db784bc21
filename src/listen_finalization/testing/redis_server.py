"""A real redis-server on loopback that a test may freeze, kill and start again."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

BINARY = "redis-server"
START_LIMIT = 10.0
"""Seconds for a start; one takes a few hundredths of a second."""

_TRIES = 5


class RedisServer:
    """One process on a free port of 127.0.0.1; nothing is written but what a test saves itself.

    A context manager: entering it returns once the server answers, leaving it ends the process,
    whatever state it is in. `options` are those of the command line, without their dashes.
    """

    def __init__(self, directory: Path, **options: str) -> None:
        """Prepare a server whose files, if any, lie in `directory`."""
        self._options = {"save": "", "appendonly": "no", "dir": str(directory), **options}
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    @property
    def pid(self) -> int:
        """The process's id. Raises `RuntimeError` where none runs."""
        if self._process is None:
            raise RuntimeError
        return self._process.pid

    def start(self, **options: str) -> None:
        """Start, after an end or a kill again on the same port; options are added to the first.

        Raises `TimeoutError` where it does not answer within `START_LIMIT`.
        """
        self._options.update(options)
        for _ in range(_TRIES):
            self._process = subprocess.Popen(self._command(), stdout=subprocess.DEVNULL)  # noqa: S603
            if self._answers():
                return
            # Another process was given the port in between.
            self._port = free_port()
        raise TimeoutError

    def _command(self) -> list[str]:
        flags = [text for name, value in self._options.items() for text in (f"--{name}", value)]
        return [BINARY, "--bind", "127.0.0.1", "--port", str(self._port), *flags]

    def _answers(self) -> bool:
        """Wait until the server says anything; False where its process ended."""
        limit = time.monotonic() + START_LIMIT
        while self._process is not None and self._process.poll() is None:
            if _pinged(self._port):
                return True
            if time.monotonic() > limit:
                self.end()
                raise TimeoutError
            time.sleep(0.01)
        return False

    def freeze(self) -> None:
        """Stop the process as it stands: connections are accepted and nothing is said."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Kill the process and wait for its end. May be called again."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def installed() -> bool:
    """Whether this machine has a redis-server."""
    return shutil.which(BINARY) is not None


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody has now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _pinged(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(1) in (b"+", b"-")
    except OSError:
        return False
