"""Firestore: one read of a document that cannot exist, indexes, single fields, retention."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from google.api_core import exceptions
from google.auth.exceptions import GoogleAuthError
from google.cloud.firestore_v1 import AsyncClient

from listen_finalization.domain.job import SECOND
from listen_finalization.errors import StoreError
from listen_finalization.operate.facts import Blind, Look, Missing, ServerTime, Unseen
from listen_finalization.operate.google import parsed
from listen_finalization.operate.probes.reach import Reach
from listen_finalization.operate.schema import ACTIVE, READY, Field, Index
from listen_finalization.outbox.firestore.rpc import Rpc

_NOBODY = "doctor"
"""A document id that no job has: theirs are UUIDs."""

_OVERRIDDEN = "indexConfig.usesAncestorConfig:false OR ttlConfig:*"
"""The only listing of fields that the API offers (fields.list)."""

_BLIND: Mapping[type[Exception], Blind] = {
    exceptions.PermissionDenied: Blind.FORBIDDEN,
    exceptions.Unauthenticated: Blind.NO_CREDENTIALS,
    exceptions.DeadlineExceeded: Blind.TIMED_OUT,
}


async def look_at_store(reach: Reach) -> Look[ServerTime]:
    """Read from the database and return its clock."""
    made = {"project": reach.deployed.project, "database": reach.deployed.database}
    try:
        client = await asyncio.to_thread(AsyncClient, **made)
    except GoogleAuthError:
        return Unseen(Blind.NO_CREDENTIALS)
    rpc = Rpc(client, lambda: 0)
    before = time.time()
    try:
        now = (await rpc.read([rpc.names.job(_NOBODY)])).now / SECOND
    except StoreError as fault:
        return _untold(fault.__cause__)
    finally:
        await rpc.close()
    return ServerTime(earliest=now, latest=now, before=before, after=time.time())


def _untold(cause: BaseException | None) -> Missing | Unseen:
    if isinstance(cause, exceptions.NotFound):
        return Missing()
    if isinstance(cause, exceptions.PermissionDenied) and cause.reason == "SERVICE_DISABLED":
        return Unseen(Blind.API_DISABLED)
    if isinstance(cause, GoogleAuthError):
        return Unseen(Blind.NO_CREDENTIALS)
    known = (blind for kind, blind in _BLIND.items() if isinstance(cause, kind))
    return Unseen(next(known, Blind.UNREACHABLE))


async def look_at_indexes(reach: Reach) -> Look[Mapping[Index, str]]:
    """Return every composite index of the database with its state."""
    found: dict[Index, str] = {}
    async for page in _pages(reach, "indexes"):
        read = parsed(page, _indexes)
        if isinstance(read, Missing | Unseen):
            return read
        found |= read
    return found


async def look_at_fields(reach: Reach) -> Look[Mapping[tuple[str, str], Field]]:
    """Return every field that is indexed or retained otherwise than by default."""
    found: dict[tuple[str, str], Field] = {}
    async for page in _pages(reach, "fields", filter=_OVERRIDDEN):
        read = parsed(page, _fields)
        if isinstance(read, Missing | Unseen):
            return read
        found |= read
    return found


async def _pages(
    reach: Reach, kind: str, **parameters: str
) -> AsyncIterator[Look[Mapping[str, Any]]]:
    """Yield pages of a list over all collection groups, to the last or to one that is none."""
    place = f"{reach.google.at.firestore}/v1/{reach.deployed.database_path}"
    url, more = f"{place}/collectionGroups/-/{kind}", parameters
    while True:
        page = await reach.google.get(url, **more)
        yield page
        token = page.get("nextPageToken") if isinstance(page, Mapping) else None
        if not token:
            return
        more = {**parameters, "pageToken": str(token)}


def _indexes(page: Mapping[str, Any]) -> dict[Index, str]:
    """Return the indexes of a page, without the document name that the server adds to each."""
    found = {}
    for told in page.get("indexes", []):
        fields = tuple(
            (one["fieldPath"], str(one.get("order", "")))
            for one in told["fields"]
            if one["fieldPath"] != "__name__"
        )
        collection, _ = _placed(told["name"])
        found[Index(collection, told["queryScope"], fields)] = str(told["state"])
    return found


def _fields(page: Mapping[str, Any]) -> dict[tuple[str, str], Field]:
    return {_placed(told["name"]): _field(told) for told in page.get("fields", [])}


def _field(told: Mapping[str, Any]) -> Field:
    indexes = told.get("indexConfig", {}).get("indexes", [])
    kept = told.get("ttlConfig")
    return Field(
        indexes=frozenset((one["queryScope"], _order(one["fields"][0])) for one in indexes),
        ready=all(one.get("state") == READY for one in indexes),
        offset=None if kept is None else str(kept.get("expirationOffset", "0s")),
        retained=kept is not None and kept.get("state") == ACTIVE,
    )


def _order(field: Mapping[str, Any]) -> str:
    return str(field.get("order") or field.get("arrayConfig") or "")


def _placed(name: str) -> tuple[str, str]:
    """Return collection group and last part of a name like .../collectionGroups/C/fields/F."""
    _, _, tail = name.partition("/collectionGroups/")
    collection, _, own = tail.split("/", 2)
    return collection, own
