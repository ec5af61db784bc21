"""Every case that takes a `ground` is shown on both stores: on Firestore by `make test-full`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .ground import FileGround, Ground, ProjectGround

FIRESTORE = pytest.param(
    "firestore", marks=[pytest.mark.xdist_group("firestore"), pytest.mark.full]
)


@pytest.fixture(params=["sqlite", FIRESTORE])
def ground(request: pytest.FixtureRequest) -> Ground:
    """A fresh file, or a fresh project of the emulator."""
    name = "file_ground" if request.param == "sqlite" else "project_ground"
    made: Ground = request.getfixturevalue(name)
    return made


@pytest.fixture
def file_ground(tmp_path: Path) -> FileGround:
    """A fresh file, alone for what only the embedded store can show."""
    return FileGround(tmp_path)


@pytest.fixture
async def project_ground(
    tmp_path: Path, firestore_host: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ProjectGround]:
    """A fresh project of the emulator, alone for what only Firestore can show."""
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_host)
    made = ProjectGround(tmp_path, firestore_host)
    yield made
    await made.close()
