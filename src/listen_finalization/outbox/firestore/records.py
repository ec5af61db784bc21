"""`ports.Records` on Firestore: one document each, its value as JSON text."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from listen_finalization.domain.job import Instant
from listen_finalization.errors import RowUnreadableError, StoreUnavailableError, ValueRefusedError
from listen_finalization.outbox.codec import dumps
from listen_finalization.outbox.firestore import queries, writes
from listen_finalization.outbox.firestore.attempts import repeated
from listen_finalization.outbox.firestore.fields import Reading
from listen_finalization.outbox.firestore.names import nameable
from listen_finalization.outbox.firestore.rpc import Document, Rpc
from listen_finalization.outbox.firestore.values import encode
from listen_finalization.ports import Row

MOST = 10_000
_BEYOND = "g"
"""Sorts behind every hex digit."""


class FirestoreRecords:
    """The records of one database: a collection for each kind.

    They lie in `conversation_finalization_records/{kind}/conversation_finalization_rows`; that
    last name is a collection group of our own, so that its exemption from indexes is, too.
    """

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def get(self, kind: str, key: str) -> Row | None:
        name = self._name(kind, key)
        document = (await repeated(lambda _: self._rpc.read((name,)))).of(name)
        return None if document is None else _row(document)

    async def put_if(
        self, kind: str, key: str, value: Mapping[str, Any], *, version: int
    ) -> Row | None:
        """Write the record; a commit of unknown outcome is found again by its random token."""
        text, token = _text(value), secrets.token_hex(8)
        name = self._name(kind, key)

        async def attempt(_: int) -> Row | None:
            found = await self._rpc.read((name,))
            document = found.of(name)
            if document is not None and _token(document) == token:
                return Row(key, value, _version(document))
            if version != (0 if document is None else _version(document)):
                return None
            after = _next(version, found.now)
            fields = {"key": key, "value": text, "version": after, "token": token}
            await self._rpc.commit([_write(document, name, fields)])
            return Row(key, value, after)

        return await repeated(attempt)

    async def list(self, kind: str, *, prefix: str = "", limit: int = 100) -> tuple[Row, ...]:
        if not 1 <= limit <= MOST:
            raise ValueRefusedError
        first = self._name(kind, prefix)
        end = first + _BEYOND
        asked = queries.rows(first, end, limit)
        found = await repeated(lambda _: self._rpc.query(asked, self._rpc.names.kind(kind)))
        rows = (_readable(document) for document in found.documents.values())
        return tuple(row for row in rows if row is not None)

    async def delete(self, kind: str, key: str) -> bool:
        name = self._name(kind, key)
        unknown = False

        async def attempt(_: int) -> bool:
            nonlocal unknown
            document = (await self._rpc.read((name,))).of(name)
            if document is None:
                return unknown
            try:
                await self._rpc.commit([writes.remove(document)])
            except StoreUnavailableError:
                unknown = True
                raise
            return True

        return await repeated(attempt)

    def _name(self, kind: str, key: str) -> str:
        """Return a record's name. Raises `ValueRefusedError` for a kind that cannot be one."""
        if not nameable(kind):
            raise ValueRefusedError
        encode(key)
        return self._rpc.names.record(kind, key)


def _text(value: Mapping[str, Any]) -> str:
    try:
        text = dumps(dict(value))
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueRefusedError from error
    encode(text)
    return text


def _next(version: int, now: Instant) -> int:
    """Return the version after; a new record starts at the time, so that no old version fits it."""
    return version + 1 if version else max(now, 1)


def _write(document: Document | None, name: str, fields: Mapping[str, Any]) -> Any:
    stored = {field: encode(value) for field, value in fields.items()}
    if document is None:
        return writes.create(name, stored)
    return writes.update(document, stored, tuple(stored))


def _version(document: Document) -> int:
    return Reading(document.fields).required_number("version")


def _token(document: Document) -> str | None:
    return Reading(document.fields).text("token")


def _row(document: Document) -> Row:
    r = Reading(document.fields)
    try:
        value = json.loads(r.required_text("value"))
    except (ValueError, RecursionError) as error:
        raise RowUnreadableError from error
    return Row(r.required_text("key"), value, _version(document))


def _readable(document: Document) -> Row | None:
    """Return the record; None for a damaged one, so that it stands in nobody's way."""
    try:
        return _row(document)
    except RowUnreadableError:
        return None
