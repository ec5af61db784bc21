"""Every query that this store sends, built here and nowhere else: the index files answer to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.cloud.firestore_v1.types import query

from listen_finalization.domain.codes import Status
from listen_finalization.outbox.firestore.names import JOBS, MEMORIES, ROWS
from listen_finalization.outbox.firestore.values import Value, encode, encode_instant

_QUERY = query.StructuredQuery.pb()
_FROM = _QUERY.CollectionSelector
_FILTER = _QUERY.Filter
_FIELD = _QUERY.FieldReference
_ORDER = _QUERY.Order
_CURSOR = query.Cursor.pb()
_COUNT = query.StructuredAggregationQuery.pb()

_EQUAL = _QUERY.FieldFilter.Operator.EQUAL
_FROM_ON = _QUERY.FieldFilter.Operator.GREATER_THAN_OR_EQUAL
_BELOW = _QUERY.FieldFilter.Operator.LESS_THAN
_UP = _QUERY.Direction.ASCENDING
_DOWN = _QUERY.Direction.DESCENDING
_ID = "__name__"
_DUE_FIELDS = (
    "dispatch_generation",
    "status",
    "requires_byok",
    "handovers",
    "reconcile_after_at",
    "claim_id",
)


def due(limit: int, after: tuple[int, str] | None) -> Any:
    """Ask for rows by due time, from behind the row of this time and document name.

    The filter holds nothing back but values that are no time, which would sort before all times.
    """
    asked = _QUERY(
        select=_fields(_DUE_FIELDS),
        where=_where("reconcile_after_at", _FROM_ON, encode_instant(0)),
        order_by=[_order("reconcile_after_at", _UP), _order(_ID, _UP)],
        limit=_limit(limit),
    )
    return _behind(_of(asked, JOBS), after)


def leases(limit: int) -> Any:
    """Ask for leased rows by the end of their lease."""
    asked = _QUERY(
        select=_fields(_DUE_FIELDS),
        where=_status(Status.LEASED),
        order_by=[_order("lease_expires_at", _UP), _order(_ID, _UP)],
        limit=_limit(limit),
    )
    return _of(asked, JOBS)


def newest(status: Status | None, limit: int, after: tuple[int, str] | None) -> Any:
    """Ask for whole rows by creation, newest first, from behind this time and document name."""
    dated = _where("created_at", _FROM_ON, encode_instant(0))
    asked = _QUERY(
        where=dated if status is None else _all([_status(status), dated]),
        order_by=[_order("created_at", _DOWN), _order(_ID, _DOWN)],
        limit=_limit(limit),
    )
    return _behind(_of(asked, JOBS), after)


def oldest(status: Status) -> Any:
    """Ask for the creation time of the first row of a status."""
    dated = _where("created_at", _FROM_ON, encode_instant(0))
    asked = _QUERY(
        select=_fields(("created_at",)),
        where=_all([_status(status), dated]),
        order_by=[_order("created_at", _UP), _order(_ID, _UP)],
        limit=_limit(1),
    )
    return _of(asked, JOBS)


def count(status: Status) -> Any:
    """Ask how many rows have a status."""
    asked = _of(_QUERY(where=_status(status)), JOBS)
    total = _COUNT.Aggregation(alias="rows", count=_COUNT.Aggregation.Count())
    return _COUNT(structured_query=asked, aggregations=[total])


def memories(conversation_id: str) -> Any:
    """Ask for the memories of a conversation, below its user."""
    return _of(_QUERY(where=_where("conversation_id", _EQUAL, encode(conversation_id))), MEMORIES)


def rows(first: str, end: str, limit: int) -> Any:
    """Ask for records by document name from `first` on and below `end`, below their kind."""
    bounds = [
        _where(_ID, _FROM_ON, Value(reference_value=first)),
        _where(_ID, _BELOW, Value(reference_value=end)),
    ]
    asked = _QUERY(where=_all(bounds), order_by=[_order(_ID, _UP)], limit=_limit(limit))
    return _of(asked, ROWS)


def _of(asked: Any, collection: str) -> Any:
    asked.from_.append(_FROM(collection_id=collection))
    return asked


def _behind(asked: Any, after: tuple[int, str] | None) -> Any:
    if after is not None:
        moment, name = after
        place = [encode_instant(moment), Value(reference_value=name)]
        asked.start_at.CopyFrom(_CURSOR(values=place, before=False))
    return asked


def _fields(names: Sequence[str]) -> Any:
    return _QUERY.Projection(fields=[_FIELD(field_path=name) for name in names])


def _where(name: str, operator: int, value: Any) -> Any:
    return _FILTER(
        field_filter=_QUERY.FieldFilter(field=_FIELD(field_path=name), op=operator, value=value)
    )


def _status(status: Status) -> Any:
    return _where("status", _EQUAL, encode(status))


def _all(filters: Sequence[Any]) -> Any:
    both = _QUERY.CompositeFilter.Operator.AND
    return _FILTER(composite_filter=_QUERY.CompositeFilter(op=both, filters=filters))


def _order(name: str, direction: int) -> Any:
    return _ORDER(field=_FIELD(field_path=name), direction=direction)


def _limit(limit: int) -> Any:
    return {"value": limit}
