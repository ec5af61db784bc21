"""Which edges of the table and which refusal codes an exploration has to meet."""

from __future__ import annotations

from listen_finalization.domain.codes import RefusalCode, Status, Verb
from listen_finalization.domain.table import TABLE

from .core import Edge

_Q, _L = Status.QUEUED, Status.LEASED

NO_EDGES: dict[Edge, str] = {
    (Verb.POSTPONE, _Q, _L): "a moved due time keeps the status",
    (Verb.POSTPONE, _L, _Q): "a moved due time keeps the status",
}
"""Pairs of a source and a target that no transition of the verb joins, and why."""

NO_CODES: dict[RefusalCode, str] = {
    RefusalCode.SCHEMA_NEWER: "the codec's: such a row never reaches `decide`",
}
"""Refusal codes that `decide` does not give, and why."""


def expected_edges() -> frozenset[Edge]:
    """Return every edge of the table that an exploration must visit."""
    return frozenset(
        (verb, source, target)
        for verb, row in TABLE.items()
        for source in row.sources
        for target in row.targets
        if (verb, source, target) not in NO_EDGES
    )


def expected_codes() -> frozenset[RefusalCode]:
    """Return every code that an exploration must be refused with."""
    return frozenset(RefusalCode) - frozenset(NO_CODES)
