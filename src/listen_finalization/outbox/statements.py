"""The SQL statements, one file each, read once at import."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

_ROOT = files("listen_finalization.outbox") / "sql"


def _read(directory: Traversable) -> dict[str, str]:
    return {
        entry.name.removesuffix(".sql"): entry.read_text("utf-8")
        for entry in directory.iterdir()
        if entry.name.endswith(".sql")
    }


STATEMENTS = _read(_ROOT)
"""Statement text by verb, the file's name without its ending."""

MIGRATIONS = tuple(text for _, text in sorted(_read(_ROOT / "migrations").items()))
"""Migration scripts in their order; the store's schema version is how many were applied."""
