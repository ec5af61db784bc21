"""Shapes are read from the messages that clients send."""

from __future__ import annotations

from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore_v1 import Client, FieldFilter, Or
from google.cloud.firestore_v1.base_query import BaseFilter

from listen_finalization.domain.codes import Status
from listen_finalization.outbox.firestore import queries

from .index_rules import COLLECTION_GROUP, Shape
from .shapes import RUN_COUNT, RUN_QUERY, UnknownShapeError, shape_of

JOBS = "conversation_finalization_jobs"
FROM_ON = "GREATER_THAN_OR_EQUAL"


def shape(query: Any) -> Shape:
    return shape_of(RUN_QUERY(structured_query=query))


def test_page_behind_a_cursor_is_read() -> None:
    assert shape(queries.newest(Status.QUEUED, 10, (1, "jobs/1"))) == Shape(
        JOBS,
        equal=frozenset({"status"}),
        ranged=frozenset({("created_at", FROM_ON)}),
        order=(("created_at", "DESCENDING"), ("__name__", "DESCENDING")),
        cursor=True,
    )


def test_range_of_names_is_read() -> None:
    assert shape(queries.rows("a", "b", 10)) == Shape(
        "conversation_finalization_rows",
        ranged=frozenset({("__name__", FROM_ON), ("__name__", "LESS_THAN")}),
        order=(("__name__", "ASCENDING"),),
    )


def test_count_is_read() -> None:
    asked = RUN_COUNT(structured_aggregation_query=queries.count(Status.QUEUED))
    assert shape_of(asked) == Shape(JOBS, equal=frozenset({"status"}), counted=True)


def test_query_of_the_library_over_a_collection_group_is_read() -> None:
    client = Client(project="p", credentials=AnonymousCredentials())  # type: ignore[no-untyped-call]
    asked = client.collection_group("memories").where(
        filter=FieldFilter("tags", "array_contains", "a")
    )
    assert shape(asked._to_protobuf()._pb) == Shape(
        "memories", COLLECTION_GROUP, contains=frozenset({"tags"})
    )


def test_query_that_the_rules_do_not_know_is_no_shape() -> None:
    client = Client(project="p", credentials=AnonymousCredentials())  # type: ignore[no-untyped-call]
    parts: list[BaseFilter] = [FieldFilter("a", "==", 1), FieldFilter("b", "==", 1)]
    asked = client.collection("jobs").where(filter=Or(parts))
    with pytest.raises(UnknownShapeError):
        shape(asked._to_protobuf()._pb)


def test_sum_is_no_shape() -> None:
    asked = queries.count(Status.QUEUED)
    asked.aggregations[0].sum.field.field_path = "attempt_count"
    with pytest.raises(UnknownShapeError):
        shape_of(RUN_COUNT(structured_aggregation_query=asked))
