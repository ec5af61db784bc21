"""Processors that fail, named by the setting as `cli.processors:Class`."""

from __future__ import annotations

import time
from typing import Any

from listen_finalization.domain.content import Enrichment

SECRET = "canary-of-the-processor-5d1f"


class Failing:
    """Fails for the conversation's own reason, with a text that must be seen nowhere."""

    def enrich(self, request: Any) -> Any:
        raise ValueError(SECRET)

    def memories(self, request: Any, enrichment: Any) -> Any:
        return []


class Slow:
    """Takes longer than a test waits."""

    def enrich(self, request: Any) -> Any:
        time.sleep(6.0)
        return Enrichment("late", "late")

    def memories(self, request: Any, enrichment: Any) -> Any:
        return []


class Discarding:
    """Finds every conversation not worth keeping, and steers terminals with its title."""

    def enrich(self, request: Any) -> Any:
        discard = not request.force_process if hasattr(request, "force_process") else True
        return Enrichment("\x1b[31mred\x07", "overview", discard=discard)

    def memories(self, request: Any, enrichment: Any) -> Any:
        return []
