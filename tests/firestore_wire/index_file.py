"""The index file of the deployment: composite indexes, and what becomes of single fields."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from .index_rules import (
    ASCENDING,
    COLLECTION,
    CONTAINS,
    DESCENDING,
    Index,
    Part,
    Shape,
    covered,
)

SHIPPED = Path(__file__).parents[2] / "deploy" / "firestore" / "indexes.json"
EVERY = "*"
_AUTOMATIC = ((COLLECTION, ASCENDING), (COLLECTION, DESCENDING), (COLLECTION, CONTAINS))
"""Scope and mode of the indexes that each field has, unless a file says otherwise."""


@dataclass(frozen=True, slots=True)
class IndexFile:
    """Indexes as `firebase.json` names them: `overrides` by collection and field path."""

    composite: tuple[Index, ...]
    overrides: Mapping[tuple[str, str], tuple[Part, ...]]

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        """Read the file's JSON."""
        composite = (
            Index(i["collectionGroup"], i["queryScope"], tuple(_part(f) for f in i["fields"]))
            for i in told["indexes"]
        )
        overrides = {
            (o["collectionGroup"], o["fieldPath"]): tuple(map(_mode, o["indexes"]))
            for o in told["fieldOverrides"]
        }
        return cls(tuple(composite), overrides)

    @classmethod
    def shipped(cls) -> Self:
        return cls.of(json.loads(SHIPPED.read_text("utf-8")))

    def single(self, collection: str, field: str) -> tuple[Part, ...]:
        """Return scope and mode of a field's own indexes.

        A field takes after the map that it lies in, then after the collection's `*`.
        """
        path = field.split(".")
        tried = [".".join(path[:length]) for length in range(len(path), 0, -1)]
        for name in (*tried, EVERY):
            if (collection, name) in self.overrides:
                return self.overrides[collection, name]
        return _AUTOMATIC

    def covers(self, shape: Shape) -> bool:
        return covered(shape, (*self.composite, *self._singles(shape)))

    def uncovered(self, shapes: Iterable[Shape]) -> list[Shape]:
        return [shape for shape in shapes if not self.covers(shape)]

    def without(self, index: Index) -> Self:
        """Return the file without one index; of a field, its own override then says so."""
        if index in self.composite:
            return replace(self, composite=tuple(i for i in self.composite if i != index))
        [(field, mode)] = index.fields
        left = tuple(
            part for part in self.single(index.collection, field) if part != (index.scope, mode)
        )
        return replace(self, overrides={**self.overrides, (index.collection, field): left})

    def singles(self, collection: str, fields: Iterable[str]) -> list[Index]:
        """Return the single-field indexes that these fields have."""
        return [
            Index(collection, scope, ((field, mode),))
            for field in fields
            for scope, mode in self.single(collection, field)
        ]

    def _singles(self, shape: Shape) -> Iterator[Index]:
        fields = {*shape.equal, *shape.contains, *(field for field, _ in shape.sorting)}
        yield from self.singles(shape.collection, sorted(fields))


def _part(field: Mapping[str, str]) -> Part:
    return field["fieldPath"], field.get("order") or field["arrayConfig"]


def _mode(told: Mapping[str, str]) -> Part:
    return told.get("queryScope", COLLECTION), told.get("order") or told["arrayConfig"]
