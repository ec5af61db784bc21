"""Servers of the machine that the tests of several directories share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from listen_finalization.testing.firestore_emulator import EmulatorMissingError, firestore_emulator


@pytest.fixture(scope="session")
def firestore_host() -> Iterator[str]:
    """Where the emulator listens; without one, tests are skipped, but fail in CI."""
    try:
        with firestore_emulator() as host:
            yield host
    except EmulatorMissingError as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))
