"""Servers of the machine that the tests of several directories share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from listen_finalization.testing.firestore_emulator import EmulatorMissingError, firestore_emulator
from listen_finalization.testing.redis_server import BINARY, RedisServer, installed

if TYPE_CHECKING:
    from firestore_wire.watch import Watch
    from integration.cloud import Cloud


def _is_missing(said: str) -> NoReturn:
    """Skip the test for want of a server; in CI fail, so that none is missed."""
    if os.environ.get("CI"):
        pytest.fail(said)
    pytest.skip(said)


@pytest.fixture(scope="session")
def firestore_emulator_host() -> Iterator[str]:
    """Where the emulator listens; without one, tests are skipped, but fail in CI."""
    try:
        with firestore_emulator() as host:
            yield host
    except EmulatorMissingError as missing:
        _is_missing(str(missing))


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


@pytest.fixture
def cloud_of(
    tmp_path: Path, firestore_host: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Cloud]:
    """Makes the servers of production around the emulator; options are those of `Cloud`."""
    from integration.cloud import Cloud

    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_host)
    return partial(Cloud, tmp_path, firestore_host)


@pytest.fixture
def redis_installed() -> None:
    """A machine that has a redis-server."""
    if not installed():
        _is_missing(f"{BINARY} is not installed (Debian: apt-get install redis-server)")


@pytest.fixture
def redis_server(redis_installed: None, tmp_path: Path) -> Iterator[RedisServer]:
    """A fresh, empty server for one test."""
    directory = tmp_path / "redis"
    directory.mkdir()
    with RedisServer(directory) as server:
        yield server
