"""Child processes of the bench: started, listened to, killed."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.product import MeasurementError

ROOT = Path(__file__).parent.parent
PATIENCE = 60.0


class Child:
    """One `bench.child`, killed at the latest when the block ends."""

    def __init__(self, directory: Path, *, lease: int) -> None:
        self.began = time.monotonic()
        command = (sys.executable, "-m", "bench.child", str(directory), str(lease))
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self._told: dict[str, float] = {}
        self._changed = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, at = line.split()
            with self._changed:
                self._told[word] = float(at)
                self._changed.notify_all()

    def told(self, word: str) -> float:
        """Wait for a word of the child and return its time. Raises `MeasurementError`."""
        with self._changed:
            if not self._changed.wait_for(lambda: word in self._told, PATIENCE):
                raise MeasurementError(f"a child process did not say {word}")
            return self._told[word]

    def says(self, word: str) -> bool:
        """Whether the child has said the word by now."""
        with self._changed:
            return word in self._told

    def cpu(self) -> float:
        """Return the seconds of CPU that all threads of the child have used, from its clock."""
        return time.clock_gettime((~self._process.pid << 3) | 2)

    def kill(self) -> float:
        """Send SIGKILL and return the time at which the process was gone."""
        self._process.kill()
        self._process.wait()
        return time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
