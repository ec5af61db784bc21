"""The shape of a query, read from the message that is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.cloud.firestore_v1.types import firestore, query

from .index_rules import ASCENDING, COLLECTION, COLLECTION_GROUP, DESCENDING, Shape

RUN_QUERY = firestore.RunQueryRequest.pb()
RUN_COUNT = firestore.RunAggregationQueryRequest.pb()

_QUERY = query.StructuredQuery
_OPERATOR = _QUERY.FieldFilter.Operator
_EQUAL = frozenset({_OPERATOR.EQUAL, _OPERATOR.IN})
_CONTAINS = frozenset({_OPERATOR.ARRAY_CONTAINS})
_RANGED = frozenset(
    {
        *(_OPERATOR.LESS_THAN, _OPERATOR.LESS_THAN_OR_EQUAL),
        *(_OPERATOR.GREATER_THAN, _OPERATOR.GREATER_THAN_OR_EQUAL),
        *(_OPERATOR.NOT_EQUAL, _OPERATOR.NOT_IN),
    }
)


class UnknownShapeError(Exception):
    """The query uses a part of the language that the rules of the indexes here do not know."""


def shape_of(request: Any) -> Shape:
    """Return the shape that a `RunQueryRequest` or `RunAggregationQueryRequest` asks for.

    Raises `UnknownShapeError`.
    """
    if isinstance(request, RUN_QUERY):
        return _shape(request.structured_query, counted=False)
    asked = request.structured_aggregation_query
    if any(one.WhichOneof("operator") != "count" for one in asked.aggregations):
        raise UnknownShapeError
    return _shape(asked.structured_query, counted=True)


def _shape(asked: Any, *, counted: bool) -> Shape:
    if len(asked.from_) != 1 or asked.HasField("find_nearest"):
        raise UnknownShapeError
    [source] = asked.from_
    filters = list(_filters(asked.where)) if asked.HasField("where") else []
    return Shape(
        source.collection_id,
        COLLECTION_GROUP if source.all_descendants else COLLECTION,
        equal=frozenset(name for name, operator in filters if operator in _EQUAL),
        contains=frozenset(name for name, operator in filters if operator in _CONTAINS),
        ranged=frozenset((n, _OPERATOR(o).name) for n, o in filters if o in _RANGED),
        order=tuple((one.field.field_path, _direction(one)) for one in asked.order_by),
        cursor=asked.HasField("start_at") or asked.HasField("end_at"),
        counted=counted,
    )


def _direction(order: Any) -> str:
    return DESCENDING if order.direction == _QUERY.Direction.DESCENDING else ASCENDING


def _filters(where: Any) -> Iterator[tuple[str, int]]:
    kind = where.WhichOneof("filter_type")
    if kind == "field_filter":
        told = where.field_filter
        if told.op not in _EQUAL | _CONTAINS | _RANGED:
            raise UnknownShapeError
        yield told.field.field_path, told.op
    elif kind == "composite_filter" and where.composite_filter.op == (
        _QUERY.CompositeFilter.Operator.AND
    ):
        for part in where.composite_filter.filters:
            yield from _filters(part)
    else:
        raise UnknownShapeError
