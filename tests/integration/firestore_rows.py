"""What lies in a Firestore database, in the columns of the embedded store's tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from google.cloud.firestore_v1 import AsyncClient

from listen_finalization.domain.job import Job
from listen_finalization.outbox.codec import encode_effects, encode_history

from .invariants import Tables

_CONVERSATION = (
    *("status", "discarded", "deleted", "structured"),
    *("finalization_job_id", "finalization_revision"),
)


async def tables_of(client: AsyncClient, jobs: Sequence[Job]) -> Tables:
    """Read everything but the jobs, which the store has listed."""
    results = client.collection("conversation_finalization_results")
    return Tables(
        jobs=[columns(job) for job in jobs],
        conversations=[row async for row in _collected(client, "conversations")],
        results=[{"job_id": found.id} async for found in results.stream()],
        memories=[row async for row in _collected(client, "memories")],
    )


async def _collected(client: AsyncClient, kind: str) -> AsyncIterator[dict[str, Any]]:
    async for found in client.collection_group(kind).stream():
        _, uid, *_ = found.reference.path.split("/")
        fields = found.to_dict() or {}
        blank = dict.fromkeys(_CONVERSATION)
        place = {"uid": uid, "conversation_id": fields.get("conversation_id", found.id)}
        context = (fields.get("external_data") or {}).get("calendar_meeting_context")
        yield {**blank, **fields, **place, "calendar_meeting_context": context}


def columns(job: Job) -> dict[str, Any]:
    """Return a job as its row in the embedded store."""
    plain = {name: getattr(job, name) for name in job.__slots__}
    history, effects = encode_history(job.history), encode_effects(job.effects)
    return {**plain, "history": history, "effects": effects}
