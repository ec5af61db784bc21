"""The production store, on the emulator, as a subject of the conformance suite."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from google.cloud.firestore_v1 import DELETE_FIELD, AsyncClient

from listen_finalization.outbox.conformance import POLICY
from listen_finalization.outbox.firestore import FirestoreStore
from listen_finalization.ports import Conversations, Outbox, Records

JOBS = "conversation_finalization_jobs"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class FirestoreSubject:
    """A store, in a project of its own where none is named.

    `advance` shifts the time that the server tells. `FIRESTORE_EMULATOR_HOST` must be set.
    """

    def __init__(self, project: str | None = None) -> None:
        self.project = project or f"p-{secrets.token_hex(8)}"
        self._shift = 0
        self._open()

    def _open(self) -> None:
        self.client = AsyncClient(project=self.project)
        self.store = FirestoreStore(
            self.project, POLICY, client=self.client, shift=lambda: self._shift
        )

    @property
    def outbox(self) -> Outbox:
        return self.store.outbox

    @property
    def conversations(self) -> Conversations:
        return self.store.conversations

    @property
    def records(self) -> Records:
        return self.store.records

    def advance(self, micros: int) -> None:
        self._shift += micros

    async def restart(self) -> None:
        await self.store.close()
        self._open()

    async def close(self) -> None:
        await self.store.close()

    async def set_job(self, job_id: str, fields: Mapping[str, Any]) -> None:
        await self.client.document(JOBS, job_id).update(_stored(fields))

    async def set_conversation(
        self, uid: str, conversation_id: str, fields: Mapping[str, Any]
    ) -> None:
        await self.place(uid, conversation_id).update(_stored(fields))

    async def conversation_fields(self, uid: str, conversation_id: str) -> Mapping[str, Any]:
        found = (await self.place(uid, conversation_id).get()).to_dict()
        assert found is not None
        return dict(found)

    async def remove_conversation(self, uid: str, conversation_id: str) -> None:
        await self.place(uid, conversation_id).delete()

    async def job_count(self) -> int:
        rows = [row async for row in self.client.collection(JOBS).list_documents()]
        return len(rows)

    def place(self, uid: str, conversation_id: str) -> Any:
        """Return the reference of a conversation's document."""
        return self.client.document("users", uid, "conversations", conversation_id)


def _stored(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as this store keeps them: times as times, None as an absent field."""
    return {name: _value(name, value) for name, value in fields.items()}


def _value(name: str, value: Any) -> Any:
    if value is None:
        return DELETE_FIELD
    if name.endswith("_at") and type(value) is not bool and isinstance(value, int):
        return _EPOCH + timedelta(microseconds=value)
    return value
