"""`document_size` counts as the emulator does: the last document that fits is of 1 MiB."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from google.api_core.exceptions import InvalidArgument
from google.cloud.firestore_v1 import GeoPoint

from listen_finalization.outbox.firestore.size import MAX_DOCUMENT, document_size

from .firestore_subject import FirestoreSubject

pytestmark = pytest.mark.xdist_group("firestore")

BULK = {"bulk": "b" * 600_000}


@pytest.mark.parametrize(
    ("conversation_id", "fields"),
    [
        ("c", {}),
        ("\u00e9" * 20, {"\u00e9": "\u00e9\U0001f600"}),
        ("c", {"number": 2**60, "small": 1, "real": 0.5, "yes": True, "none": None}),
        ("c", {"time": datetime(2026, 1, 1, tzinfo=UTC), "place": GeoPoint(1.0, 2.0)}),
        ("c", {"bytes": b"12345", "no_bytes": b""}),
        ("c", {"map": {}, "list": []}),
        ("c", {"map": {"a": {"b": "c"}, "d": {}}, "list": ["x", 1, {"k": "v"}, {}]}),
        ("c", {"segments": [{"id": "s", "text": "we ship", "start": 0.5}] * 300}),
    ],
)
async def test_document_of_the_limit_is_stored_and_one_byte_more_is_not(
    firestore: FirestoreSubject, conversation_id: str, fields: Mapping[str, Any]
) -> None:
    place = firestore.place("user", conversation_id)
    room = MAX_DOCUMENT - await _measured(firestore, conversation_id, {**fields, "rest": ""})
    await place.set({**BULK, **fields, "rest": "x" * room})
    assert await _size(firestore, conversation_id) == MAX_DOCUMENT
    with pytest.raises(InvalidArgument):
        await place.set({**BULK, **fields, "rest": "x" * (room + 1)})


async def _measured(
    firestore: FirestoreSubject, conversation_id: str, fields: Mapping[str, Any]
) -> int:
    await firestore.place("user", conversation_id).set({**BULK, **fields})
    return await _size(firestore, conversation_id)


async def _size(firestore: FirestoreSubject, conversation_id: str) -> int:
    rpc = firestore.store._rpc
    name = rpc.names.conversation("user", conversation_id)
    document = (await rpc.read((name,))).of(name)
    assert document is not None
    return document_size(document.fields, document.name)
