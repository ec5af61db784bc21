"""Typed reading of a stored document; a field of another type makes the document unreadable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from listen_finalization.domain.job import Instant
from listen_finalization.errors import RowUnreadableError
from listen_finalization.outbox.firestore.values import instant_of

Fields = Mapping[str, Any]
"""Stored values by field name."""

T = TypeVar("T")


class Reading:
    """Reads the fields of one document or map; absent and null are the same."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def _held(self, name: str, kind: str) -> Any:
        if name not in self._fields:
            return None
        value = self._fields[name]
        found = value.WhichOneof("value_type")
        if found == "null_value":
            return None
        if found != kind:
            raise RowUnreadableError
        return getattr(value, kind)

    def text(self, name: str) -> str | None:
        held: str | None = self._held(name, "string_value")
        return held

    def number(self, name: str) -> int | None:
        held: int | None = self._held(name, "integer_value")
        return held

    def flag(self, name: str) -> bool:
        return bool(self._held(name, "boolean_value"))

    def instant(self, name: str) -> Instant | None:
        held = self._held(name, "timestamp_value")
        return None if held is None else instant_of(held)

    def seconds(self, name: str) -> float:
        """Return a number of either kind; the application may have stored a whole one."""
        if name in self._fields and self._fields[name].WhichOneof("value_type") == "integer_value":
            return float(self._fields[name].integer_value)
        return float(self._held(name, "double_value") or 0.0)

    def map(self, name: str) -> Fields:
        held = self._held(name, "map_value")
        return {} if held is None else held.fields

    def maps(self, name: str) -> list[Reading]:
        """Return the maps of an array."""
        held = self._held(name, "array_value")
        return [] if held is None else [_map(value) for value in held.values]

    def values(self, name: str) -> list[Any]:
        """Return the stored values of an array."""
        held = self._held(name, "array_value")
        return [] if held is None else list(held.values)

    def required_text(self, name: str) -> str:
        return _required(self.text(name))

    def required_number(self, name: str) -> int:
        return _required(self.number(name))

    def required_instant(self, name: str) -> Instant:
        return _required(self.instant(name))


def _map(value: Any) -> Reading:
    if value.WhichOneof("value_type") != "map_value":
        raise RowUnreadableError
    return Reading(value.map_value.fields)


def _required(value: T | None) -> T:
    if value is None:
        raise RowUnreadableError
    return value
