"""How uvicorn is to be run, so that it neither prints requests nor waits for ever."""

from __future__ import annotations

import logging
from typing import Any

KEEP_ALIVE = 65
"""Seconds; above the 60 s of the usual proxies, so that they close idle connections, not we."""

CONNECTIONS = 1_000
"""Open connections and running requests, idle ones included; over it uvicorn answers 503."""

DRAIN = 5
"""Seconds for requests at shutdown. Runs are not requests: the finalizer drains them after."""


def uvicorn_settings() -> dict[str, Any]:
    """Return the keyword arguments for `uvicorn.Config`.

    No access log (its lines hold query strings) and no logging set-up of uvicorn's own; the
    process's handlers get what it has to say, through `ClassOnly`. Forwarded headers are not
    believed: nothing here reads the client's address or scheme.
    """
    return {
        "access_log": False,
        "log_config": None,
        "server_header": False,
        "proxy_headers": False,
        "timeout_keep_alive": KEEP_ALIVE,
        "timeout_graceful_shutdown": DRAIN,
        "limit_concurrency": CONNECTIONS,
        "lifespan": "on",
    }


class ClassOnly(logging.Filter):
    """Leaves of a record that holds an exception its first line and the exception's class.

    asyncio repeats the exception's text from the second line on.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[0] is not None:
            first = record.getMessage().partition("\n")[0]
            record.msg = f"{first}: {record.exc_info[0].__qualname__}"
            record.args = record.exc_info = record.exc_text = None
        return True


def hush(*names: str) -> None:
    """Put `ClassOnly` on the named loggers, by default those of uvicorn and asyncio.

    Call it once, before the server starts; again is harmless.
    """
    for name in names or ("uvicorn.error", "uvicorn.asgi", "asyncio"):
        logger = logging.getLogger(name)
        if not any(isinstance(held, ClassOnly) for held in logger.filters):
            logger.addFilter(ClassOnly())
