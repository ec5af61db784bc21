"""Progress on stderr: a live table where a person looks, one line for each change elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from listen_finalization.cli.printing import console, harmless, say
from listen_finalization.cli.stages import PATH, Stage

SHOWN = 16
"""Files of which the live table shows a line; what ended first leaves it first."""
_ENDED = frozenset({Stage.DONE, Stage.FAILED})


class Progress(Protocol):
    """Who is told how far each file is."""

    def note(self, path: Path, stage: Stage, code: str | None = None) -> None:
        """Take note of a stage; `code` is the bounded code of a failure."""
        ...

    def attempt(self, path: Path, count: int, code: str | None) -> None:
        """Take note of how many attempts ended and what the last one ended with."""
        ...


class Lines:
    """Prints a line for each stage, and for each attempt that failed."""

    def __init__(self) -> None:
        self._failed: set[tuple[Path, int, str]] = set()

    def note(self, path: Path, stage: Stage, code: str | None = None) -> None:
        say(f"{path}: {stage}" + (f" ({code})" if code else ""), to_stderr=True)

    def attempt(self, path: Path, count: int, code: str | None) -> None:
        if code is not None and (path, count, code) not in self._failed:
            self._failed.add((path, count, code))
            say(f"{path}: attempt {count} ended with {code}", to_stderr=True)


class Live:
    """A table that is drawn anew several times a second; rich is drawing while it is entered."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._stages: dict[Path, tuple[Stage, str]] = dict.fromkeys(paths, (Stage.WAITING, ""))
        self._attempts: Counter[Path] = Counter()
        self._began = time.monotonic()

    def note(self, path: Path, stage: Stage, code: str | None = None) -> None:
        self._stages[path] = (stage, code or "")

    def attempt(self, path: Path, count: int, code: str | None) -> None:
        self._attempts[path] = count
        stage, _ = self._stages[path]
        if stage not in _ENDED:
            self._stages[path] = (stage, code or "")

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        stages = list(self._stages.items())
        ended = sum(stage in _ENDED for _, (stage, _) in stages)
        head = f"{ended} of {len(stages)} files, {time.monotonic() - self._began:.1f} s"
        recent = sorted(stages, key=lambda item: item[1][0] in _ENDED)[:SHOWN]
        return Group(Text(head, style="bold"), self._table(recent))

    def _table(self, rows: Sequence[tuple[Path, tuple[Stage, str]]]) -> Any:
        from rich.table import Table
        from rich.text import Text

        built = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
        for path, (stage, code) in rows:
            count = self._attempts[path]
            attempt = f"attempt {count}:" if code and count else ""
            name = Text(harmless(path.name), overflow="ellipsis", no_wrap=True)
            built.add_row(
                name, Text(_bar(stage)), _styled(stage), Text(f"{attempt} {code}".strip())
            )
        return built


def _bar(stage: Stage) -> str:
    done = PATH.index(stage) + 1 if stage in PATH else 0
    return "#" * done + "." * (len(PATH) - done)


def _styled(stage: Stage) -> Any:
    from rich.text import Text

    return Text(stage, style={Stage.DONE: "green", Stage.FAILED: "red"}.get(stage, "cyan"))


@contextlib.contextmanager
def progress_of(paths: Sequence[Path], *, plain: bool) -> Iterator[Progress]:
    """Yield who is told: live where stderr is a terminal, unless `plain`."""
    screen = console(sys.stderr)
    if plain or not screen.is_terminal or screen.is_dumb_terminal:
        yield Lines()
        return
    from rich.live import Live as Drawing

    shown = Live(paths)
    with Drawing(shown, console=screen, refresh_per_second=8):
        yield shown
