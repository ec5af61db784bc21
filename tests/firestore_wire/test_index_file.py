"""What an index file leaves of the single-field indexes that every field has by itself."""

from __future__ import annotations

from .index_file import IndexFile
from .index_rules import ASCENDING, COLLECTION, CONTAINS, DESCENDING, Index, Shape

NOTHING = IndexFile.of({"indexes": [], "fieldOverrides": []})
AUTOMATIC = ((COLLECTION, ASCENDING), (COLLECTION, DESCENDING), (COLLECTION, CONTAINS))
UP = {"order": "ASCENDING", "queryScope": "COLLECTION"}


def overridden(field: str, *indexes: dict[str, str]) -> dict[str, object]:
    return {"collectionGroup": "jobs", "fieldPath": field, "indexes": list(indexes)}


def test_field_is_indexed_by_itself() -> None:
    assert NOTHING.single("jobs", "status") == AUTOMATIC
    assert NOTHING.covers(Shape("jobs", equal=frozenset({"status"})))


def test_override_replaces_what_a_field_has_by_itself() -> None:
    file = IndexFile.of({"indexes": [], "fieldOverrides": [overridden("status", UP)]})

    assert file.single("jobs", "status") == ((COLLECTION, ASCENDING),)
    assert file.single("jobs", "made") == AUTOMATIC
    assert file.single("rows", "status") == AUTOMATIC


def test_exempted_collection_spares_the_fields_that_are_named() -> None:
    overrides = [overridden("*"), overridden("status", UP)]
    file = IndexFile.of({"indexes": [], "fieldOverrides": overrides})

    assert file.single("jobs", "status") == ((COLLECTION, ASCENDING),)
    assert file.single("jobs", "made") == ()
    assert not file.covers(Shape("jobs", order=(("made", ASCENDING),)))


def test_field_of_a_map_takes_after_the_map() -> None:
    file = IndexFile.of({"indexes": [], "fieldOverrides": [overridden("map")]})

    assert file.single("jobs", "map.part") == ()
    assert file.single("jobs", "mapped") == AUTOMATIC


def test_file_without_a_composite_index_lacks_it() -> None:
    fields = [
        {"fieldPath": "status", "order": "ASCENDING"},
        {"fieldPath": "made", "order": "DESCENDING"},
    ]
    told = {"collectionGroup": "jobs", "queryScope": "COLLECTION", "fields": fields}
    file = IndexFile.of({"indexes": [told], "fieldOverrides": []})
    shape = Shape("jobs", equal=frozenset({"status"}), order=(("made", DESCENDING),))
    [index] = file.composite

    assert index == Index("jobs", COLLECTION, (("status", ASCENDING), ("made", DESCENDING)))
    assert file.covers(shape)
    assert file.without(index).uncovered([shape]) == [shape]


def test_file_without_a_single_field_index_lacks_it() -> None:
    shape = Shape("jobs", order=(("made", DESCENDING),))
    [_, down, _] = NOTHING.singles("jobs", ["made"])

    assert NOTHING.without(down).uncovered([shape]) == [shape]
    assert NOTHING.without(down).covers(Shape("jobs", order=(("made", ASCENDING),)))
