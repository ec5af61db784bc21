"""A user's destinations, kept as records; their addresses and secrets leave only in a delivery."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from typing import Any

from listen_finalization.domain.identity import identifier_fault
from listen_finalization.domain.job import MAX_DELIVERIES
from listen_finalization.errors import ListenFinalizationError, ValueRefusedError
from listen_finalization.ports import Records, Row
from listen_finalization.processing.delivery import Destination
from listen_finalization.processing.signing import parse_secret

KIND = "destination"


class TooManyDestinationsError(ListenFinalizationError):
    """A user has at most 32 enabled destinations. Remove one first."""


class Destinations:
    """Add, list and remove the destinations of a user."""

    def __init__(self, records: Records) -> None:
        self._records = records

    async def of(self, uid: str) -> tuple[Destination, ...]:
        """Return the user's enabled destinations by id, at most 32.

        One that is damaged is left out: it must not keep the others from their deliveries.
        """
        rows = await self._records.list(KIND, prefix=f"{uid}/", limit=2 * MAX_DELIVERIES)
        found = [d for d in map(_destination, rows) if d is not None and d.enabled]
        return tuple(found[:MAX_DELIVERIES])

    async def add(self, uid: str, destination_id: str, url: str) -> str:
        """Store or replace a destination and return its new signing secret, shown this once.

        Raises `InvalidDeliveryError` for a bad id or address, `ValueRefusedError` for a uid that
        could name another's destinations, and `TooManyDestinationsError`.
        """
        if identifier_fault(uid) is not None:
            raise ValueRefusedError
        secret = new_secret()
        Destination(id=destination_id, url=url, secret=parse_secret(secret), enabled=True)
        others = {d.id for d in await self.of(uid)} - {destination_id}
        if len(others) >= MAX_DELIVERIES:
            raise TooManyDestinationsError
        value = {"url": url, "secret": secret, "enabled": True}
        await self._put(f"{uid}/{destination_id}", value)
        return secret

    async def _put(self, key: str, value: Mapping[str, Any]) -> None:
        while True:
            held = await self._records.get(KIND, key)
            version = held.version if held is not None else 0
            if await self._records.put_if(KIND, key, value, version=version) is not None:
                return

    async def remove(self, uid: str, destination_id: str) -> bool:
        """Delete a destination; False where there was none."""
        return await self._records.delete(KIND, f"{uid}/{destination_id}")


def new_secret() -> str:
    """Mint a signing secret in the Standard Webhooks form."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode("ascii")


def _destination(row: Row) -> Destination | None:
    _, _, destination_id = row.key.rpartition("/")
    try:
        return Destination(
            id=destination_id,
            url=row.value["url"],
            secret=parse_secret(row.value["secret"]),
            enabled=row.value["enabled"] is True,
        )
    except (ListenFinalizationError, KeyError, TypeError, AttributeError):
        return None
