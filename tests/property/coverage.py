"""Which edges of the table and which refusal codes an exploration has to meet."""

from __future__ import annotations

from listen_finalization.domain.codes import RefusalCode
from listen_finalization.domain.table import TABLE

from .core import Edge

NO_CODES: dict[RefusalCode, str] = {
    RefusalCode.SCHEMA_NEWER: "the codec's: such a row never reaches `decide`",
}
"""Refusal codes that `decide` does not give, and why."""


def expected_edges() -> frozenset[Edge]:
    """Return every edge of the table that an exploration must visit."""
    return frozenset(
        (verb, source, target) for verb, row in TABLE.items() for source, target in row.edges
    )


def expected_codes() -> frozenset[RefusalCode]:
    """Return every code that an exploration must be refused with."""
    return frozenset(RefusalCode) - frozenset(NO_CODES)
