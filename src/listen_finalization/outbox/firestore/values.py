"""Values of Python and of Firestore, both ways; what cannot be stored is refused by class."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from google.cloud.firestore_v1.types import document

from listen_finalization.domain.job import SECOND, Instant
from listen_finalization.errors import ValueRefusedError

Value = document.Value.pb()
"""The message class of one stored value."""

_ARRAY = document.ArrayValue.pb()
_MAP = document.MapValue.pb()
_RESERVED = re.compile(r"__.*__", re.DOTALL)
_LATEST = 253_402_300_800 * SECOND
"""The end of the year 9999, where Firestore's time ends ("Supported data types")."""


def encode(value: Any) -> Any:
    """Return the stored form of None, bool, int, float, str, and of lists and mappings of them.

    A stored value is returned as it is. Raises `ValueRefusedError` for what Firestore cannot hold:
    other types, numbers that are not finite or beyond 64 bits, text that is not Unicode, a list
    right inside a list, and names that are empty or reserved (`__x__`).
    """
    try:
        return _encoded(value)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueRefusedError from error


def _encoded(value: Any) -> Any:
    match value:
        case Value():
            return value
        case None:
            return Value(null_value=0)
        case bool():
            return Value(boolean_value=value)
        case int():
            return Value(integer_value=value)
        case float() if math.isfinite(value):
            return Value(double_value=value)
        case str():
            return Value(string_value=value)
        case Mapping():
            return Value(map_value=_MAP(fields={_name(k): _encoded(v) for k, v in value.items()}))
        case list() | tuple():
            return Value(array_value=_ARRAY(values=[_element(one) for one in value]))
    raise ValueRefusedError


def _name(key: object) -> str:
    if not isinstance(key, str) or not key or _RESERVED.fullmatch(key):
        raise ValueRefusedError
    return key


def _element(value: Any) -> Any:
    if isinstance(value, list | tuple):
        raise ValueRefusedError
    return _encoded(value)


def encode_instant(instant: int) -> Any:
    """Return a stored time. Raises `ValueRefusedError` outside of the years 1970 to 9999."""
    if not 0 <= instant < _LATEST:
        raise ValueRefusedError
    whole, micros = divmod(instant, SECOND)
    return Value(timestamp_value={"seconds": whole, "nanos": micros * 1_000})


def instant_of(told: Any) -> Instant:
    """Return the instant of a time message, cut to microseconds."""
    return Instant(told.seconds * SECOND + told.nanos // 1_000)


def decode(value: Any) -> Any:
    """Return what JSON can say of a stored value: a time is its text, bytes and places are None."""
    kind = value.WhichOneof("value_type")
    if kind == "map_value":
        return {name: decode(held) for name, held in value.map_value.fields.items()}
    if kind == "array_value":
        return [decode(held) for held in value.array_value.values]
    if kind == "timestamp_value":
        return value.timestamp_value.ToJsonString()
    return getattr(value, kind) if kind in _PLAIN else None


_PLAIN = frozenset({"boolean_value", "integer_value", "double_value", "string_value"})


def texts(values: Sequence[Any]) -> tuple[str, ...]:
    """Return the texts among stored values."""
    return tuple(v.string_value for v in values if v.WhichOneof("value_type") == "string_value")
