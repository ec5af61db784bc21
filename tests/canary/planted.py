"""Where the canaries are planted, and the processors that do their best to spill them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from listen_finalization.domain.content import Enrichment, Segment
from listen_finalization.errors import (
    EnvironmentFaultError,
    KeysRejectedError,
    StepFailedError,
)
from listen_finalization.processing.protocol import Request
from listen_finalization.testing.canary import canary
from listen_finalization.testing.processor import Act, record

PLACES = ("transcript", "speaker", "calendar", "url", "query", "result", "error")


def planted() -> dict[str, str]:
    """Return a canary for each place, by the place's name."""
    return {place: canary(place) for place in PLACES}


def segments(texts: dict[str, str]) -> list[Segment]:
    return [
        Segment("s1", texts["speaker"], 0.0, 2.0, f"We ship {texts['transcript']} on Friday."),
        Segment("s2", texts["speaker"], 2.0, 4.0, f"I will call {texts['transcript']} tomorrow."),
    ]


def context(texts: dict[str, str]) -> dict[str, Any]:
    return {"calendar_meeting_context": {"title": texts["calendar"]}}


def url(texts: dict[str, str], port: int) -> str:
    path, query = quote(texts["url"], safe=""), quote(texts["query"], safe="")
    return f"http://127.0.0.1:{port}/{path}?token={query}"


def told(request: Request, texts: dict[str, str]) -> str:
    """Return all that a step knows, as a careless provider would put it into its message."""
    said = [(segment.speaker, segment.text) for segment in request.content.segments]
    return f"{said} {request.content.calendar_context} {texts['error']}"


Spill = Callable[[str], BaseException]


def chained(text: str) -> Exception:
    error = RuntimeError(text)
    error.__cause__ = ValueError(text)
    error.__cause__.__context__ = KeyError(text)
    error.add_note(text)
    return error


class LoudError(Exception):
    """An exception whose every text and attribute is the canary."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = self.detail = self.body = text

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError(self.args[0])

    __repr__ = __str__


SPILLS: dict[str, Spill] = {
    "plain": ValueError,
    "chained": chained,
    "loud": LoudError,
    "unprintable": UnprintableError,
    "key": lambda text: KeyError(text),
    "unicode": lambda text: UnicodeDecodeError("utf-8", text.encode(), 0, 1, text),
    "os": lambda text: OSError(5, text, text),
    "group": lambda text: ExceptionGroup(text, [ValueError(text), chained(text)]),
    "base group": lambda text: BaseExceptionGroup(text, [SystemExit(text)]),
    "exit": SystemExit,
    "interrupt": KeyboardInterrupt,
    "stop": StopIteration,
    "failed code": lambda text: StepFailedError(text),  # type: ignore[arg-type]
    "environment": lambda text: EnvironmentFaultError(text, retry_after=text),  # type: ignore[arg-type]
    "keys": lambda text: KeysRejectedError(text),  # type: ignore[arg-type]
}


def spilling(spill: Spill, texts: dict[str, str]) -> Act:
    def act(request: Request) -> Any:
        raise spill(told(request, texts))

    return act


def quoting(texts: dict[str, str]) -> Act:
    """Return a record that holds the canaries where a record may hold them."""

    def act(request: Request) -> Any:
        made = record(request)
        return Enrichment(texts["result"], told(request, texts), "work", made.action_items)

    return act
