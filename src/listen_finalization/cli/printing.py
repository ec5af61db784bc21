"""What reaches a terminal or a pipe: harmless text, tables and one JSON document."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import IO, Any

from listen_finalization.errors import ListenFinalizationError

_PIPE_WIDTH = 10_000
_JOINERS = frozenset("\u200c\u200d")
"""Format characters that words of many languages, and emoji, are written with."""


class NobodyReadsError(ListenFinalizationError):
    """Whoever read the output went away; what was done is done."""


def harmless(text: object) -> str:
    """Return the text with everything escaped that could steer a terminal or hide from the eye.

    Control characters (C0, DEL, C1), so every ANSI sequence; format characters, so every bidi
    control; line and paragraph separators; lone surrogates. The answer is one line.
    """
    return "".join(map(_shown, str(text)))


def _shown(letter: str) -> str:
    if letter in _JOINERS or unicodedata.category(letter) not in _HARMFUL:
        return letter
    point = ord(letter)
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def say(line: str = "", *, to_stderr: bool = False) -> None:
    """Print one line, made harmless."""
    _write(harmless(line) + "\n", sys.stderr if to_stderr else sys.stdout)


def _write(text: str, stream: IO[str]) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        raise NobodyReadsError from None


def complain(lines: Iterable[str], remedy: str | None) -> None:
    """Print what went wrong, a line each, and what to do next, to stderr."""
    for line in lines:
        say(f"error: {line}", to_stderr=True)
    if remedy:
        say(f"next:  {remedy}", to_stderr=True)


def print_json(document: Any) -> None:
    """Print one JSON document, in ASCII."""
    _write(json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n", sys.stdout)


def console(stream: IO[str]) -> Any:
    """Return a rich console that takes no markup from what it prints."""
    from rich.console import Console

    wide = None if stream.isatty() else _PIPE_WIDTH
    return Console(file=stream, width=wide, markup=False, emoji=False, highlight=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table to stdout: within the width of a terminal, else whole, a line per row."""
    screen = console(sys.stdout)
    with screen.capture() as captured:
        screen.print(table(columns, rows))
    lines = captured.get().splitlines()
    _write("".join(line.rstrip() + "\n" for line in lines), sys.stdout)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Any:
    """Build a rich table of cells made harmless; None and empty cells show as a hyphen."""
    from rich.table import Table
    from rich.text import Text

    built = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        built.add_column(column, overflow="fold")
    for row in rows:
        built.add_row(*(Text(harmless(_cell(cell))) for cell in row))
    return built


def _cell(value: object) -> object:
    """Return what stands for a value: a hyphen for none, yes and no for a flag."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None or value == "" else value


def print_fields(pairs: Iterable[tuple[str, object]]) -> None:
    """Print one name and value a line, the values in one column."""
    shown = [(name, _cell(value)) for name, value in pairs]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        say(f"{name:<{width}}  {value}")
