"""The record of a settlement, as much of it as its document has room for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from listen_finalization.domain.codes import EffectCode, Step
from listen_finalization.domain.job import Job
from listen_finalization.errors import ValueRefusedError
from listen_finalization.outbox.firestore.rpc import Document
from listen_finalization.outbox.firestore.size import (
    MAX_DOCUMENT,
    SPARE,
    document_size,
    field_size,
)
from listen_finalization.outbox.firestore.talk import STRUCTURED
from listen_finalization.outbox.firestore.values import encode

Record = Mapping[str, Any]


def publishable(payload: str) -> Any:
    """Return the stored form of a step result that is to be published.

    Raises `ValueRefusedError` where it is no JSON object or holds what a document cannot: told
    when the step is stored, so that a settlement never meets it.
    """
    return encode(_record(payload))


def _record(payload: str) -> Record:
    try:
        record = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise ValueRefusedError from error
    if not isinstance(record, dict):
        raise ValueRefusedError
    return record


def fitted(payload: str, conversation: Document) -> tuple[Any, bool]:
    """Return the record to publish and whether it lost something; None where nothing fits.

    It is shortened in the order of `processing.records.bounded` (events, then action items, each
    from the last, then the overview) until the document is 64 KiB under its limit, or nothing is
    left to take away. A record without any of it is published into the last bytes.
    """
    record = _record(payload)
    rest = {k: v for k, v in conversation.fields.items() if k != STRUCTURED}
    taken = document_size(rest, conversation.name)
    value = encode(record)
    while taken + field_size(STRUCTURED, value) > MAX_DOCUMENT - SPARE:
        shorter = _shorter(record)
        if shorter is None:
            break
        record, value = shorter, encode(shorter)
    if taken + field_size(STRUCTURED, value) > MAX_DOCUMENT:
        return None, True
    return value, record != _record(payload)


def _shorter(record: Record) -> Record | None:
    for name, kind in _ORDER:
        held = record.get(name)
        if isinstance(held, kind) and held:
            return {**record, name: held[: len(held) // 2]}
    return None


_ORDER: tuple[tuple[str, type[list[Any]] | type[str]], ...] = (
    ("events", list),
    ("action_items", list),
    ("overview", str),
    ("title", str),
)


def coded(job: Job) -> Job:
    """Note on the ledger that the record was shortened."""
    effects = tuple(
        replace(effect, code=EffectCode.RESULT_SHORTENED) if effect.step is Step.ENRICH else effect
        for effect in job.effects
    )
    return replace(job, effects=effects)
