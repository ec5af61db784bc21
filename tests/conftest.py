"""Servers of the machine that the tests of several directories share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from listen_finalization.testing.firestore_emulator import EmulatorMissingError, firestore_emulator

if TYPE_CHECKING:
    from firestore_wire.watch import Watch


@pytest.fixture(scope="session")
def firestore_emulator_host() -> Iterator[str]:
    """Where the emulator listens; without one, tests are skipped, but fail in CI."""
    try:
        with firestore_emulator() as host:
            yield host
    except EmulatorMissingError as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))


@pytest.fixture
def firestore_watch(firestore_emulator_host: str) -> Iterator[Watch]:
    """What the test asks the emulator for.

    A query that the shipped index file does not cover fails the test that sent it: the emulator
    answers it, the service would not.
    """
    from firestore_wire.index_file import IndexFile
    from firestore_wire.watch import Watch

    with Watch() as watch:
        yield watch
    watch.check(IndexFile.shipped())


@pytest.fixture
def firestore_host(firestore_emulator_host: str, firestore_watch: Watch) -> str:
    """Where the emulator listens, with every query of the test watched."""
    return firestore_emulator_host
