"""Logs as JSON lines on stderr; of other libraries' records only what cannot hold content."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from listen_finalization.http.serving import hush

OURS = "listen_finalization"
_PLAIN = frozenset({"uvicorn.error", "asyncio"})
"""Loggers whose first lines are known texts, once `hush` took exceptions out of them."""


class JsonLines(logging.Formatter):
    """Writes one record as one JSON object in ASCII, never with a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        return json.dumps({**line, **_told(record)}, ensure_ascii=True)


def _told(record: logging.LogRecord) -> dict[str, Any]:
    if record.name == OURS:
        return _event(record.getMessage())
    if record.name.startswith(f"{OURS}.") or record.name in _PLAIN:
        return {"message": record.getMessage().partition("\n")[0]}
    fault = record.exc_info[0] if record.exc_info else None
    return {"event": "library_message", "fault": fault.__qualname__ if fault else None}


def _event(message: str) -> dict[str, Any]:
    try:
        told = json.loads(message)
    except ValueError:
        told = None
    return told if isinstance(told, dict) else {"message": message}


def log_to_stderr() -> None:
    """Send our events and uvicorn's notices to stderr, of everything else what warns."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.INFO)
    hush()


def log_nowhere() -> None:
    """Keep logs out of a command whose stderr shows progress."""
    logging.getLogger().handlers = [logging.NullHandler()]
    hush()
