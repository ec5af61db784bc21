"""Firestore: that it answers, and that indexes, exemptions and retention are those of the files."""

from __future__ import annotations

from collections.abc import Mapping

from listen_finalization.operate import remedies
from listen_finalization.operate.checks.check import Case, Check
from listen_finalization.operate.facts import ServerTime
from listen_finalization.operate.findings import Code, Said, failed, fine
from listen_finalization.operate.schema import READY, Field, Index

_API = "firestore.googleapis.com"
_ROLE = "roles/datastore.viewer"
_BUILDING = "wait until they are built, then run doctor again"


def _indexes(case: Case, live: Mapping[Index, str]) -> Said:
    wanted = sorted(case.deployed.indexes)
    absent = [one.told for one in wanted if one not in live]
    if absent:
        return failed(f"missing: {'; '.join(absent)}", remedies.apply(case.deployed))
    building = [one.told for one in wanted if live[one] != READY]
    if building:
        return failed(f"not ready: {'; '.join(building)}", _BUILDING)
    return fine(f"{len(wanted)} ready")


def _fields(case: Case, live: Mapping[tuple[str, str], Field]) -> Said:
    wanted = case.deployed.fields
    other = [
        f"{collection}.{name}"
        for (collection, name), field in sorted(wanted.items())
        if _indexed(live, (collection, name)) != field.indexes
    ]
    if other:
        return failed(f"indexed otherwise: {', '.join(other)}", remedies.apply(case.deployed))
    building = [".".join(key) for key in sorted(wanted) if key in live and not live[key].ready]
    if building:
        return failed(f"not ready: {', '.join(building)}", _BUILDING)
    return fine(f"{len(wanted)} as the files say")


def _indexed(
    live: Mapping[tuple[str, str], Field], key: tuple[str, str]
) -> frozenset[tuple[str, str]] | None:
    """Return what is indexed of a field: one without an override has what `*` has."""
    found = live.get(key) or live.get((key[0], "*"))
    return None if found is None else found.indexes


def _retention(case: Case, live: Mapping[tuple[str, str], Field]) -> Said:
    kept = case.deployed.retention
    found = live.get((kept.collection, kept.field))
    if found is None or found.offset is None:
        return failed("none", remedies.apply(case.deployed))
    if found.offset != kept.offset:
        return failed(_expiry(found.offset), remedies.apply(case.deployed))
    if not found.retained:
        return failed("not in force yet", _BUILDING)
    return fine(_expiry(found.offset))


def _expiry(offset: str) -> str:
    return f"{offset} after the field's time"


def _missing(case: Case) -> Said:
    return failed(
        "no such database",
        f"gcloud firestore databases create --database='{case.deployed.database}' "
        f"--location=nam5 --project={case.deployed.project}",
    )


STORE_CHECKS: tuple[Check[ServerTime], ...] = (
    Check(
        code=Code.STORE_READ,
        sight=lambda seen: seen.store,
        expected=lambda case: f"an answer of the database {case.deployed.database}",
        judge=lambda _case, _time: fine("answered"),
        missing=_missing,
        role=_ROLE,
        api=_API,
    ),
)
INDEX_CHECKS: tuple[Check[Mapping[Index, str]], ...] = (
    Check(
        code=Code.STORE_INDEXES,
        sight=lambda seen: seen.indexes,
        expected=lambda case: f"{len(case.deployed.indexes)} composite indexes",
        judge=_indexes,
        role=_ROLE,
        api=_API,
    ),
)
FIELD_CHECKS: tuple[Check[Mapping[tuple[str, str], Field]], ...] = (
    Check(
        code=Code.STORE_FIELDS,
        sight=lambda seen: seen.fields,
        expected=lambda case: f"{len(case.deployed.fields)} fields indexed as the files say",
        judge=_fields,
        role=_ROLE,
        api=_API,
    ),
    Check(
        code=Code.STORE_RETENTION,
        sight=lambda seen: seen.fields,
        expected=lambda case: (
            f"{case.deployed.retention.field}: {_expiry(case.deployed.retention.offset)}"
        ),
        judge=_retention,
        role=_ROLE,
        api=_API,
    ),
)
