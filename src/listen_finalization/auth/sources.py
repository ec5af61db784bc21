"""Where the keys of an entrance come from: the port, and the keys that are at hand."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey


class NoKey(Enum):
    """Why a key source has no key for a `kid`."""

    UNKNOWN = "unknown"
    UNAVAILABLE = "unavailable"


class KeySource(Protocol):
    """Finds the public key that a token names."""

    async def key(self, kid: str, /) -> RSAPublicKey | NoKey:
        """Return the prepared key: UNKNOWN is the caller's fault, UNAVAILABLE is ours."""
        ...


class StaticKeySource:
    """The keys of local issuers: known from the start and never fetched."""

    def __init__(self, keys: Mapping[str, RSAPublicKey]) -> None:
        self._keys = dict(keys)

    async def key(self, kid: str, /) -> RSAPublicKey | NoKey:
        """Return the key, or UNKNOWN."""
        return self._keys.get(kid, NoKey.UNKNOWN)
