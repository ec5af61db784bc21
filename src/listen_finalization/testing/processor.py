"""A processor that does as it is told and writes down what it was asked, for users' tests."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from listen_finalization.domain.content import ActionItem, Enrichment, Memory
from listen_finalization.processing.protocol import Request

Act = Callable[[Request], Any]
"""What a step does with its request: return any value, valid or not, or raise."""


@dataclass(frozen=True, slots=True)
class Call:
    """One step that began, or that came to its end; content-free, so that it can be printed.

    `credential` says whose keys the step was given: `platform` or `user`.
    """

    step: str
    job_id: str
    claim: int
    credential: str = "platform"
    ended: bool = False


class FakeProcessor:
    """Takes `delay` seconds for each step, then does what its act says.

    With a `log` every call is appended to that file at once, one JSON line each, so that the
    count survives a kill; `read_calls` reads it. `calls` holds those of this process. Threads may
    call the steps at the same time.
    """

    def __init__(
        self,
        *,
        delay: float = 0.0,
        enrich: Act | None = None,
        memories: Act | None = None,
        log: Path | None = None,
    ) -> None:
        self.calls: list[Call] = []
        self._delay = delay
        self._acts = {"enrich": enrich or record, "memories": memories or remembered}
        self._log = log
        self._lock = threading.Lock()

    def enrich(self, request: Request) -> Any:
        return self._step("enrich", request)

    def memories(self, request: Request, enrichment: Enrichment) -> Any:
        del enrichment
        return self._step("memories", request)

    def count(self, step: str | None = None, job_id: str | None = None) -> int:
        """Return how many calls began, of a step and of a job where they are given."""
        return count(self.calls, step, job_id)

    def _step(self, step: str, request: Request) -> Any:
        credential = "user" if request.keys else "platform"
        self._note(Call(step, request.job_id, request.claim, credential))
        if self._delay:
            time.sleep(self._delay)
        try:
            return self._acts[step](request)
        finally:
            self._note(Call(step, request.job_id, request.claim, credential, ended=True))

    def _note(self, call: Call) -> None:
        with self._lock:
            self.calls.append(call)
            if self._log is not None:
                with self._log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(call)) + "\n")


def read_calls(log: Path) -> list[Call]:
    """Read a log of calls; a last line that a kill cut off is left out."""
    if not log.exists():
        return []
    whole = log.read_text("utf-8").rpartition("\n")[0]
    return [Call(**json.loads(line)) for line in whole.splitlines()]


def count(calls: Sequence[Call], step: str | None = None, job_id: str | None = None) -> int:
    """Return how many calls began, of a step and of a job where they are given."""
    return sum(
        not call.ended and step in (None, call.step) and job_id in (None, call.job_id)
        for call in calls
    )


def record(request: Request) -> Enrichment:
    """Return a valid record that quotes the conversation."""
    said = " ".join(segment.text for segment in request.content.segments)
    items = tuple(
        ActionItem(segment.text, segment.speaker, segment.id)
        for segment in request.content.segments[:3]
    )
    return Enrichment("A conversation", said, "work", items)


def remembered(request: Request) -> list[Memory]:
    """Return one memory for each of the first three segments."""
    return [Memory(segment.text, (segment.id,)) for segment in request.content.segments[:3]]


def gives(value: Any) -> Act:
    """Return the value, whatever it is: None, a wrong type, a record out of bounds."""
    return lambda _: value


def fails(error: Callable[[], BaseException]) -> Act:
    """Raise what `error` makes."""

    def act(_: Request) -> Any:
        raise error()

    return act


def hangs(until: threading.Event, then: Act = record, *, limit: float = 60.0) -> Act:
    """Block until the event is set, for `limit` seconds at most, then go on as `then`."""

    def act(request: Request) -> Any:
        until.wait(limit)
        return then(request)

    return act


def crashes(flag: Path | None = None, then: Act = record) -> Act:
    """Kill this process with SIGKILL; with a `flag` file only while that is missing."""

    def act(request: Request) -> Any:
        if flag is not None and flag.exists():
            return then(request)
        if flag is not None:
            flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    return act


class Held:
    """A processor whose enrich step blocks in its thread until `go` is set."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.processor = FakeProcessor(enrich=hangs(self.go))

    async def begun(self, limit: float = 5.0) -> None:
        """Wait until a step runs. Raises `TimeoutError` after `limit` seconds."""
        async with asyncio.timeout(limit):
            while not self.processor.calls:  # noqa: ASYNC110 - the step is in a thread
                await asyncio.sleep(0.005)


def in_turn(*acts: Act) -> Act:
    """Do each act once, in order, and the last one from then on."""
    waiting = list(acts)
    lock = threading.Lock()

    def act(request: Request) -> Any:
        with lock:
            present = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return present(request)

    return act


def oversized(_: Request) -> Enrichment:
    """Return a record far over every bound."""
    items = tuple(ActionItem("w" * 5_000, "speaker" * 100) for _ in range(500))
    return Enrichment("t" * 10_000, "o" * 2_000_000, "other", items)
