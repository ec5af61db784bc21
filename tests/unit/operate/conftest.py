"""A live project of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .live_project import LiveProject, live_project


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveProject]:
    with live_project(tmp_path / "deploy") as made:
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", made.grpc.address)
        yield made
