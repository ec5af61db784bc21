"""The production store passes the public conformance suite, on Google's emulator."""

from __future__ import annotations

import pytest

from listen_finalization.outbox.conformance import CASES

from .firestore_subject import FirestoreSubject

pytestmark = pytest.mark.xdist_group("firestore")


@pytest.mark.parametrize("name", CASES)
async def test_production_store(name: str, firestore: FirestoreSubject) -> None:
    await CASES[name](firestore)
