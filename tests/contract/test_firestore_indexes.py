"""The shipped indexes are exactly those that the queries of the store need."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getmembers, isfunction
from typing import Any

import pytest
from google.cloud.firestore_v1 import FieldFilter

from firestore_wire.index_file import IndexFile
from firestore_wire.index_rules import COLLECTION, DESCENDING, Index, Shape
from firestore_wire.watch import Watch
from listen_finalization.outbox.firestore import queries
from listen_finalization.outbox.firestore.jobs import JOB_FIELDS

from .every_query import send_every_query
from .firestore_subject import JOBS, FirestoreSubject

pytestmark = pytest.mark.xdist_group("firestore")

OURS = {
    JOBS: JOB_FIELDS,
    "conversation_finalization_results": ("enrich", "memories"),
    "conversation_finalization_rows": ("key", "value", "version", "token"),
}
"""The collections that are this product's own, with the fields of their documents."""


async def _shapes(subject: FirestoreSubject, watch: Watch) -> list[Shape]:
    await send_every_query(subject)
    return list(watch.shapes)


async def test_every_query_of_the_store_is_sent_and_covered(
    firestore: FirestoreSubject, firestore_watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: set[str] = set()
    public = {n: f for n, f in getmembers(queries, isfunction) if _is_query(n, f)}
    for name, function in public.items():
        monkeypatch.setattr(queries, name, _noting(built, name, function))

    shapes = await _shapes(firestore, firestore_watch)

    assert built == set(public)
    assert IndexFile.shipped().uncovered(shapes) == []


async def test_every_composite_index_is_needed(
    firestore: FirestoreSubject, firestore_watch: Watch
) -> None:
    shapes = await _shapes(firestore, firestore_watch)
    file = IndexFile.shipped()

    assert file.composite
    assert [one for one in file.composite if not file.without(one).uncovered(shapes)] == []


async def test_every_field_is_indexed_as_far_as_a_query_needs_it(
    firestore: FirestoreSubject, firestore_watch: Watch
) -> None:
    shapes = await _shapes(firestore, firestore_watch)
    file = IndexFile.shipped()
    singles = [one for name, fields in OURS.items() for one in file.singles(name, fields)]

    assert singles
    assert [one for one in singles if not file.without(one).uncovered(shapes)] == []


async def test_documents_have_no_fields_that_the_exemptions_forget(
    firestore: FirestoreSubject,
) -> None:
    """Fields of later versions are held back by the `*` of each collection."""
    file = IndexFile.shipped()

    assert {name: file.single(name, "a_field_of_tomorrow") for name in OURS} == dict.fromkeys(
        OURS, ()
    )


async def test_query_without_an_index_fails_its_test(
    firestore: FirestoreSubject, firestore_watch: Watch
) -> None:
    asked = firestore.client.collection(JOBS).where(filter=FieldFilter("uid", "==", "ada"))
    assert [found async for found in asked.stream()] == []

    with pytest.raises(AssertionError, match="no index of deploy"):
        firestore_watch.check(IndexFile.shipped())
    firestore_watch.shapes.clear()


async def test_index_that_goes_missing_is_noticed(
    firestore: FirestoreSubject, firestore_watch: Watch
) -> None:
    await send_every_query(firestore)
    file = IndexFile.shipped()
    single = Index(JOBS, COLLECTION, (("created_at", DESCENDING),))

    for index in (*file.composite, single):
        with pytest.raises(AssertionError, match="no index of deploy"):
            firestore_watch.check(file.without(index))


def _is_query(name: str, function: Callable[..., Any]) -> bool:
    return function.__module__ == queries.__name__ and not name.startswith("_")


def _noting(built: set[str], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def noted(*arguments: Any, **options: Any) -> Any:
        built.add(name)
        return function(*arguments, **options)

    return noted
