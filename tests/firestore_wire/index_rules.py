"""Which queries Firestore answers from a set of indexes, and which it refuses.

The rules are those of the documentation pages "Index types in Cloud Firestore" and "Index
overview". What those leave open is read strictly: no index is read backwards, and an answer by
document name needs no index in ascending order alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

ASCENDING = "ASCENDING"
DESCENDING = "DESCENDING"
CONTAINS = "CONTAINS"
COLLECTION = "COLLECTION"
COLLECTION_GROUP = "COLLECTION_GROUP"
NAME = "__name__"

Part = tuple[str, str]
"""A field path, and its mode or operator."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A query without its values.

    `equal` are the fields under EQUAL and IN, `contains` those under ARRAY_CONTAINS, `ranged` the
    others with their operators; `order` is the order that the query states.
    """

    collection: str
    scope: str = COLLECTION
    equal: frozenset[str] = frozenset()
    contains: frozenset[str] = frozenset()
    ranged: frozenset[Part] = frozenset()
    order: tuple[Part, ...] = ()
    cursor: bool = False
    counted: bool = False

    @property
    def sorting(self) -> tuple[Part, ...]:
        """The order in which the answer comes, as Firestore completes the stated one.

        Fields under EQUAL order nothing. Ranged fields that are not named follow, by their names,
        and the document name comes last, all in the direction of the last stated field.
        """
        stated = tuple(part for part in self.order if part[0] not in self.equal)
        direction = stated[-1][1] if stated else ASCENDING
        named = {field for field, _ in stated} | {NAME}
        implied = sorted({field for field, _ in self.ranged} - named)
        whole = (*stated, *((field, direction) for field in implied))
        if any(field == NAME for field, _ in stated):
            return whole
        return (*whole, (NAME, direction))


@dataclass(frozen=True, slots=True)
class Index:
    """One index, of one field or composite."""

    collection: str
    scope: str
    fields: tuple[Part, ...]

    @property
    def entries(self) -> tuple[Part, ...]:
        """Its fields and the document name, which runs as the last field does."""
        name, mode = self.fields[-1]
        if name == NAME:
            return self.fields
        return (*self.fields, (NAME, ASCENDING if mode == CONTAINS else mode))


def covered(shape: Shape, indexes: Iterable[Index]) -> bool:
    """Say whether the query is answered from these indexes, one or several merged.

    Each index of a merge leads with filtered fields, in any order, and ends with the whole order
    of the answer; together they cover every filter. An answer in ascending order of the document
    name, filtered by nothing else, needs no index.
    """
    filters = {(field, "EQUAL") for field in shape.equal - {NAME}}
    filters |= {(field, CONTAINS) for field in shape.contains}
    if not filters and shape.sorting == ((NAME, ASCENDING),):
        return True
    served = [
        lead
        for index in indexes
        if (index.collection, index.scope) == (shape.collection, shape.scope)
        and (lead := _lead(index, shape.sorting)) is not None
        and lead <= filters
    ]
    return bool(served) and frozenset().union(*served) == filters


def _lead(index: Index, sorting: tuple[Part, ...]) -> frozenset[Part] | None:
    """Return the filters that an index serves before this order; None where it has another."""
    lead, tail = index.entries[: -len(sorting)], index.entries[-len(sorting) :]
    if tail != sorting:
        return None
    return frozenset((name, CONTAINS if mode == CONTAINS else "EQUAL") for name, mode in lead)
