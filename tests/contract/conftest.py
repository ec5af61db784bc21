"""A store on the Firestore emulator for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from .firestore_subject import FirestoreSubject


@pytest.fixture
async def firestore(
    firestore_host: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[FirestoreSubject]:
    """A store in a project of its own."""
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_host)
    made = FirestoreSubject()
    yield made
    await made.close()
