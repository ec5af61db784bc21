"""A redis-server for a test, or a clear word why there is none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from listen_finalization.testing.redis_server import BINARY, RedisServer, installed

MISSING = f"{BINARY} is not installed (Debian: apt-get install redis-server)"


def demand_redis() -> None:
    """Skip the test where there is no redis-server; in CI fail, so that none is missed."""
    if installed():
        return
    if os.environ.get("CI"):
        pytest.fail(MISSING)
    pytest.skip(MISSING)


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A fresh, empty server for one test."""
    demand_redis()
    directory = tmp_path / "redis"
    directory.mkdir()
    with RedisServer(directory) as server:
        yield server
