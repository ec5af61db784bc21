"""How large Firestore counts a document ("Storage size calculations", checked at the emulator)."""

from __future__ import annotations

from typing import Any

from listen_finalization.outbox.firestore.fields import Fields

MAX_DOCUMENT = 1_048_576
"""Bytes that a document may have ("Usage and limits")."""

SPARE = 65_536
"""Bytes that neither an append nor a published record takes: the room of what comes later."""

_NAME = 16
_DOCUMENT = 32
_FIXED = {
    "null_value": 1,
    "boolean_value": 1,
    "integer_value": 8,
    "double_value": 8,
    "timestamp_value": 8,
    "geo_point_value": 16,
}


def document_size(fields: Fields, name: str) -> int:
    """Return the bytes of a document with these stored values under this full name."""
    return name_size(name) + _DOCUMENT + sum(field_size(k, v) for k, v in fields.items())


def name_size(name: str) -> int:
    """Return the bytes of a document's name: its path behind `/documents/`."""
    path = name.partition("/documents/")[2]
    return _NAME + sum(_text(part) for part in path.split("/"))


def field_size(name: str, value: Any) -> int:
    """Return the bytes of one field with its name."""
    return _text(name) + value_size(value)


def value_size(value: Any) -> int:
    """Return the bytes of a stored value; an empty map or list counts one."""
    kind = value.WhichOneof("value_type")
    if kind == "string_value":
        return _text(value.string_value)
    if kind == "map_value":
        return sum(field_size(k, v) for k, v in value.map_value.fields.items()) or 1
    if kind == "array_value":
        return sum(map(value_size, value.array_value.values)) or 1
    if kind == "bytes_value":
        return len(value.bytes_value)
    if kind == "reference_value":
        return name_size(value.reference_value)
    return _FIXED.get(kind, 8)


def _text(text: str) -> int:
    return len(text.encode()) + 1
