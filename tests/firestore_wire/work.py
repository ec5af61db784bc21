"""What calls cost: document reads, writes and deletes as they are billed, and round trips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from google.cloud.firestore_v1.types import firestore

READ = firestore.BatchGetDocumentsRequest.pb()
COMMIT = firestore.CommitRequest.pb()
QUERY = firestore.RunQueryRequest.pb()
JOBS = "/documents/conversation_finalization_jobs/"
STEPS = "/documents/conversation_finalization_results/"
COUNTED_AT_ONCE = 1_000
"""Index entries that an aggregation counts for the price of one document read."""


@dataclass(frozen=True, slots=True)
class Work:
    """A number of operations; those on stored step results are told apart.

    `job_writes` says how many of the `writes` are of job documents.

    A document that is not there is billed as a read all the same, an answer without rows as one
    read, a write that changes nothing as a write. Deletes have a price of their own.
    """

    rpcs: int = 0
    reads: int = 0
    step_reads: int = 0
    writes: int = 0
    job_writes: int = 0
    step_writes: int = 0
    deletes: int = 0
    step_deletes: int = 0

    def __add__(self, other: Self) -> Self:
        names = [field.name for field in fields(self)]
        return type(self)(**{n: getattr(self, n) + getattr(other, n) for n in names})

    def numbers(self) -> dict[str, int]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def work_of(request: Any, answers: Sequence[Any] = ()) -> Work:
    """Return what one call cost; `answers` matter for queries and counts."""
    if isinstance(request, READ):
        return _read(request.documents)
    if isinstance(request, COMMIT):
        return _commit(request.writes)
    if isinstance(request, QUERY):
        return Work(rpcs=1, reads=max(1, sum(one.HasField("document") for one in answers)))
    return Work(rpcs=1, reads=_counted(answers))


def _read(names: Sequence[str]) -> Work:
    steps = sum(STEPS in name for name in names)
    return Work(rpcs=1, reads=len(names) - steps, step_reads=steps)


def _commit(writes: Sequence[Any]) -> Work:
    deleted = [one.delete for one in writes if one.WhichOneof("operation") == "delete"]
    written = [one.update.name for one in writes if one.WhichOneof("operation") == "update"]
    dropped, stored = sum(STEPS in n for n in deleted), sum(STEPS in n for n in written)
    return Work(
        rpcs=1,
        writes=len(written) - stored,
        job_writes=sum(JOBS in name for name in written),
        step_writes=stored,
        deletes=len(deleted) - dropped,
        step_deletes=dropped,
    )


def _counted(answers: Sequence[Any]) -> int:
    rows = sum(
        int(v.integer_value) for one in answers for v in one.result.aggregate_fields.values()
    )
    return max(1, -(-rows // COUNTED_AT_ONCE))
