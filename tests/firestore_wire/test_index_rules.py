"""The rules of the indexes, on small cases of the documentation's own kind."""

from __future__ import annotations

import pytest

from .index_rules import (
    ASCENDING,
    COLLECTION,
    COLLECTION_GROUP,
    CONTAINS,
    DESCENDING,
    NAME,
    Index,
    Part,
    Shape,
    covered,
)

UP, DOWN = ASCENDING, DESCENDING


def index(*fields: Part, scope: str = COLLECTION, collection: str = "jobs") -> Index:
    return Index(collection, scope, fields)


def asked(
    *equal: str, order: tuple[Part, ...] = (), ranged: tuple[Part, ...] = (), **more: object
) -> Shape:
    told: dict[str, object] = {"collection": "jobs", **more}
    return Shape(equal=frozenset(equal), order=order, ranged=frozenset(ranged), **told)  # type: ignore[arg-type]


STATUS = index(("status", UP))
MADE_UP, MADE_DOWN = index(("made", UP)), index(("made", DOWN))
STATUS_MADE = index(("status", UP), ("made", UP))
FROM_ON = (("made", "GREATER_THAN_OR_EQUAL"),)


@pytest.mark.parametrize(
    ("shape", "indexes"),
    [
        (asked(), ()),
        (asked(order=((NAME, UP),)), ()),
        (asked(ranged=((NAME, "LESS_THAN"),)), ()),
        (asked("status"), (STATUS,)),
        (asked("status", "kind"), (STATUS, index(("kind", UP)))),
        (asked(ranged=FROM_ON), (MADE_UP,)),
        (asked(ranged=FROM_ON, order=(("made", DOWN),)), (MADE_DOWN,)),
        (asked(order=(("made", DOWN), (NAME, DOWN))), (MADE_DOWN,)),
        (asked("status", ranged=FROM_ON), (STATUS_MADE,)),
        (asked("status", order=(("made", UP), (NAME, UP))), (STATUS_MADE,)),
        (asked("status", order=(("made", UP),)), (index(("status", DOWN), ("made", UP)),)),
        (asked("status", order=(("status", UP), ("made", UP))), (STATUS_MADE,)),
        (
            asked("kind", "status", order=(("made", UP),)),
            (STATUS_MADE, index(("kind", UP), ("made", UP))),
        ),
        (
            asked("kind", "status", order=(("made", UP),)),
            (index(("status", UP), ("kind", UP), ("made", UP)),),
        ),
        (
            asked(order=(("made", DOWN), (NAME, UP))),
            (index(("made", DOWN), (NAME, UP)),),
        ),
        (asked(contains=frozenset({"tags"})), (index(("tags", CONTAINS)),)),
        (
            asked("status", scope=COLLECTION_GROUP),
            (index(("status", UP), scope=COLLECTION_GROUP),),
        ),
    ],
)
def test_query_is_answered(shape: Shape, indexes: tuple[Index, ...]) -> None:
    assert covered(shape, indexes)


@pytest.mark.parametrize(
    ("shape", "indexes"),
    [
        (asked(order=((NAME, DOWN),)), ()),
        (asked("status"), ()),
        (asked("status", "kind"), (STATUS,)),
        (asked(ranged=FROM_ON), (MADE_DOWN,)),
        (asked(order=(("made", DOWN),)), (MADE_UP,)),
        (asked(order=(("made", DOWN), (NAME, UP))), (MADE_DOWN,)),
        (asked("status", order=(("made", UP),)), (STATUS, MADE_UP)),
        (asked("status", order=(("made", DOWN),)), (STATUS_MADE,)),
        (asked("status", order=(("made", UP),)), (index(("made", UP), ("status", UP)),)),
        (asked(ranged=FROM_ON), (STATUS_MADE,)),
        (asked("status"), (STATUS_MADE,)),
        (asked("kind", "status", order=(("made", UP),)), (STATUS_MADE,)),
        (asked(order=(("made", UP), ("due", UP))), (index(("due", UP), ("made", UP)),)),
        (asked("tags"), (index(("tags", CONTAINS)),)),
        (asked(contains=frozenset({"tags"})), (index(("tags", UP)),)),
        (asked("status", scope=COLLECTION_GROUP), (STATUS,)),
        (asked("status"), (index(("status", UP), collection="rows"),)),
    ],
)
def test_query_is_refused(shape: Shape, indexes: tuple[Index, ...]) -> None:
    assert not covered(shape, indexes)
