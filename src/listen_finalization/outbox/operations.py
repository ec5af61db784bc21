"""What the writer carries out besides commands: content and records, decided nowhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from listen_finalization.domain.commands import Command
from listen_finalization.domain.content import Segment
from listen_finalization.domain.identity import identifier_fault
from listen_finalization.domain.job import Instant
from listen_finalization.errors import ValueRefusedError


@dataclass(frozen=True, slots=True)
class Append:
    """Store segments of a conversation and raise its content version when one is new."""

    uid: str
    conversation_id: str
    segments: tuple[Segment, ...] = field(repr=False)
    language: str = "en"
    photos: int = 0
    byok: bool = False


@dataclass(frozen=True, slots=True)
class DeleteConversation:
    """Mark a conversation deleted."""

    uid: str
    conversation_id: str


@dataclass(frozen=True, slots=True)
class PutRow:
    """Write a record where its stored version is `version` (0: absent)."""

    kind: str
    key: str
    value: Mapping[str, Any] = field(repr=False)
    version: int


@dataclass(frozen=True, slots=True)
class DeleteRow:
    """Delete a record."""

    kind: str
    key: str


@dataclass(frozen=True, slots=True)
class SetAside:
    """Move the due time of a row that this version cannot read, where it is still `seen_due`."""

    job_id: str
    seen_due: Instant
    delay: int


Operation = Command | Append | DeleteConversation | PutRow | DeleteRow | SetAside


def refuse_unstorable(
    uid: str, conversation_id: str, segments: Sequence[Segment], photos: int
) -> None:
    """Raise `ValueRefusedError` for what a store would keep as something else, or nowhere."""
    times = [time for s in segments for time in (s.start, s.end)]
    nameless = identifier_fault(uid) or identifier_fault(conversation_id)
    if nameless or photos < 0 or not all(map(math.isfinite, times)):
        raise ValueRefusedError
