"""The writes of a decision: job and conversation, where a transition read them, are guarded.

A wish that is noted on the conversation alone is guarded there alone: every settlement that could
overtake it writes the conversation too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import Job
from listen_finalization.outbox.codec import memory_id
from listen_finalization.outbox.firestore import writes
from listen_finalization.outbox.firestore.jobs import MUTABLE, encode_job, encode_mutable
from listen_finalization.outbox.firestore.names import Names
from listen_finalization.outbox.firestore.rpc import Document
from listen_finalization.outbox.firestore.sight import Sight
from listen_finalization.outbox.firestore.talk import CONTEXT, STRUCTURED, changes
from listen_finalization.outbox.firestore.values import encode, encode_instant


@dataclass(frozen=True, slots=True)
class Seen:
    """What a plan needs besides the decision: `probed` is the row of another revision."""

    sight: Sight
    probed: Document | None = None
    structured: Any = None
    memories: frozenset[str] = field(default_factory=frozenset)


def plan(decision: Decision, seen: Seen, names: Names) -> list[Any]:
    """Return the writes of one commit; none where the decision changes nothing."""
    return [
        *_of_job(decision, seen, names),
        *_of_conversation(decision, seen),
        *_of_content(decision, seen, names),
    ]


def _of_job(decision: Decision, seen: Seen, names: Names) -> Iterator[Any]:
    if decision.changed:
        yield from _row(decision.job, seen.sight.job_document, seen.probed, names)
    if decision.successor is not None:
        yield writes.create(names.job(decision.successor.job_id), encode_job(decision.successor))


def _row(
    after: Job | None, row: Document | None, probed: Document | None, names: Names
) -> Iterator[Any]:
    if after is None:
        if row is not None:
            yield writes.remove(row)
        return
    name = names.job(after.job_id)
    before = next((d for d in (row, probed) if d is not None and d.name == name), None)
    if before is None:
        yield writes.create(name, encode_job(after))
    else:
        yield writes.update(before, encode_mutable(after), MUTABLE)


def _of_conversation(decision: Decision, seen: Seen) -> Iterator[Any]:
    document = seen.sight.conversation_document
    if document is None:
        return
    changed = _changes(decision, seen)
    if changed:
        fields = {path[0]: _nested(path[1:], value) for path, value in changed.items()}
        present = {name: value for name, value in fields.items() if value is not None}
        yield writes.update(document, present, tuple(".".join(path) for path in changed))
    elif decision.changed:
        yield writes.touch(document)


def _changes(decision: Decision, seen: Seen) -> Mapping[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    before, document = seen.sight.conversation, seen.sight.conversation_document
    if decision.conversation is not None and before is not None and document is not None:
        told = changes(before, decision.conversation, document.fields)
        found |= {(name,): value for name, value in told.items()}
    if decision.changed and decision.context is not None:
        found[CONTEXT] = encode(dict(decision.context))
    if seen.structured is not None:
        found[STRUCTURED,] = seen.structured
    return found


def _nested(path: tuple[str, ...], value: Any) -> Any:
    for name in reversed(path):
        value = encode({name: value})
    return value


def _of_content(decision: Decision, seen: Seen, names: Names) -> Iterator[Any]:
    owner = decision.job or seen.sight.job
    if not decision.changed or owner is None:
        return
    results = names.results(owner.job_id)
    if decision.results:
        yield _results(decision, results)
    yield from _memories(decision, owner, seen, names)
    if decision.drop_results:
        yield writes.drop(results)


def _results(decision: Decision, name: str) -> Any:
    steps: dict[str, dict[str, Any]] = {}
    for result in decision.results:
        steps.setdefault(result.step.value, {})[str(result.chunk)] = encode(result.payload)
    mask = [f"{step}.`{chunk}`" for step, chunks in steps.items() for chunk in chunks]
    return writes.merge(name, {step: encode(chunks) for step, chunks in steps.items()}, mask)


def memory_names(decision: Decision, owner: Job, names: Names) -> dict[str, Any]:
    """Return the decision's memories by the name of their document, each once."""
    found: dict[str, Any] = {}
    for memory in decision.memories:
        key = memory_id(owner.conversation_id, memory.text)
        found.setdefault(names.memory(owner.uid, key), memory)
    return found


def _memories(decision: Decision, owner: Job, seen: Seen, names: Names) -> Iterator[Any]:
    for name, memory in memory_names(decision, owner, names).items():
        if name in seen.memories:
            continue
        fields = {
            "conversation_id": encode(owner.conversation_id),
            "text": encode(memory.text),
            "segment_ids": encode(list(memory.segment_ids)),
            "created_at": encode_instant(seen.sight.now),
        }
        yield writes.create(name, fields)
