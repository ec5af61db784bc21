"""Indexes, single fields and retention of Firestore, as files and server both say them."""

from __future__ import annotations

from dataclasses import dataclass

READY = "READY"
ACTIVE = "ACTIVE"


@dataclass(frozen=True, slots=True, order=True)
class Index:
    """A composite index: collection group, scope, fields with their order."""

    collection: str
    scope: str
    fields: tuple[tuple[str, str], ...]

    @property
    def told(self) -> str:
        """The index for people."""
        return f"{self.collection}({', '.join(' '.join(field) for field in self.fields)})"


@dataclass(frozen=True, slots=True)
class Field:
    """What stays indexed of one field by itself: scope and order; empty: nothing.

    `ready` is whether all of it is built, `offset` is when documents expire after the field's
    time (a text like 2592000s; None: they do not), `retained` whether that is in force.
    """

    indexes: frozenset[tuple[str, str]]
    ready: bool = True
    offset: str | None = None
    retained: bool = False


@dataclass(frozen=True, slots=True)
class Retention:
    """After which time of which field documents expire."""

    collection: str
    field: str
    offset: str
