"""Progress on stderr, one table on stdout, everything in a JSON file."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.figures import Row

_HEADER = ("measure", "figure", "", "accept", "aim", "met", "spread", "medians behind it")


class Progress:
    """Says on stderr what runs now and since when; on a terminal in one line."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def say(self, text: str) -> None:
        line = f"[{time.monotonic() - self._began:5.0f} s] {text}"
        end = "\x1b[K\r" if self._terminal else "\n"
        print(line, end=end, file=sys.stderr, flush=True)

    def done(self) -> float:
        """Clear the line and return the seconds since the start."""
        if self._terminal:
            print(end="\x1b[K", file=sys.stderr, flush=True)
        return time.monotonic() - self._began


def table(rows: Sequence[Row]) -> str:
    """Return the rows as aligned text."""
    lines = [_HEADER, *map(_cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADER))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _cells(row: Row) -> tuple[str, ...]:
    demand = row.demand
    sign = "<=" if demand is not None and demand.at_most else ">="
    accept = f"{sign} {demand.accept:g}" if demand is not None else "-"
    aim = f"{sign} {demand.aim:g}" if demand is not None and demand.aim is not None else "-"
    spread = f"{min(row.figures):.3g}-{max(row.figures):.3g}"
    figure = f"{row.figure:.3g}"
    return (row.what, figure, row.unit, accept, aim, row.verdict, spread, row.detail)


class Presence:
    """Knows whether another bench runs over this tree at any time: two of them spoil each other.

    Whoever is here holds a shared lock, and every arrival lengthens the file by a byte.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._file = (directory / ".lock").open("ab", buffering=0)
        self._met = not self._first()
        fcntl.flock(self._file, fcntl.LOCK_SH)
        self._file.write(b".")
        self._size = self._length()

    def leave(self) -> bool:
        """Say whether nobody else was here at the arrival and nobody came since."""
        alone = not self._met and self._length() == self._size
        self._file.close()
        return alone

    def _first(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _length(self) -> int:
        return os.fstat(self._file.fileno()).st_size


def surroundings(directory: Path) -> dict[str, Any]:
    """Describe the machine and the tree that were measured."""
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg(),
        "file_system": file_system(directory),
        "commit": _commit(),
    }


def file_system(directory: Path) -> str:
    """Return the type of the file system that holds the directory."""
    path = str(directory.resolve())
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    inside = [(len(at), kind) for at, kind in mounts if f"{path}/".startswith(at.rstrip("/") + "/")]
    return max(inside, default=(0, "unknown"))[1]


def _commit() -> str:
    told = subprocess.run(
        ("git", "describe", "--always", "--dirty"), capture_output=True, text=True, check=False
    )
    return told.stdout.strip() or "unknown"


def write(path: Path, rows: Sequence[Row], facts: Mapping[str, Any]) -> None:
    """Write every number of the rows as JSON."""
    lines = [{**asdict(row), "figure": row.figure, "verdict": row.verdict} for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**facts, "rows": lines}, indent=1) + "\n", "utf-8")
