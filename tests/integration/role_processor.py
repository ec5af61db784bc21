"""The processor of the roles' processes: slow as told, and every call written down."""

from __future__ import annotations

import os
from pathlib import Path

from listen_finalization.testing.processor import FakeProcessor

LOG = "TEST_PROCESSOR_LOG"
DELAY = "TEST_PROCESSOR_DELAY"


def logged() -> FakeProcessor:
    """Build it from the environment, which the test gave its processes."""
    return FakeProcessor(delay=float(os.environ[DELAY]), log=Path(os.environ[LOG]))
