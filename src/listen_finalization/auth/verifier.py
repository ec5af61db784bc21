"""The one verifier of bearer tokens: header -> key -> signature -> claims -> a value."""

from __future__ import annotations

import binascii
import json
import re
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import InvalidSignatureError, PyJWS, PyJWTError

from listen_finalization.auth.outcome import Reason, Refused, Verified
from listen_finalization.auth.policy import TokenPolicy
from listen_finalization.auth.sources import KeySource, NoKey

ALGORITHM = "RS256"
MAX_TOKEN = 8 * 1024
"""Bytes of a token; Google's and Firebase's are near 1 KiB."""
MAX_KEY_ID = 256
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_NO_KEY = {NoKey.UNKNOWN: Reason.UNKNOWN_KEY, NoKey.UNAVAILABLE: Reason.KEYS_UNAVAILABLE}


class TokenVerifier:
    """Checks the tokens of one entrance; every call verifies anew, nothing is remembered.

    Of the token's own header only `alg` (RS256 and nothing else) and `kid` count. `jku`, `jwk`,
    `x5u`, `x5c` and the like have no effect; `crit` and `b64` are refused. A token is read from
    the Authorization header alone. Faults come back as `Refused`; no input makes it raise, and
    no answer holds anything of the input.
    """

    def __init__(
        self, policy: TokenPolicy, keys: KeySource, *, now: Callable[[], float] = time.time
    ) -> None:
        """Bind a policy to its keys; `now` is wall time in epoch seconds."""
        self._policy = policy
        self._keys = keys
        self._now = now
        self._jws = PyJWS(algorithms=[ALGORITHM], options={"enforce_minimum_key_length": True})

    async def verify(self, authorization: Sequence[str]) -> Verified | Refused:
        """Judge the values of all Authorization headers of a request, raw, in their order.

        Waits for the network only where no known key has the token's `kid`.
        """
        token = _bearer(authorization)
        if isinstance(token, Refused):
            return token
        kid = _key_id(token)
        if isinstance(kid, Refused):
            return kid
        key = await self._keys.key(kid)
        if isinstance(key, NoKey):
            return Refused(_NO_KEY[key])
        claims = self._claims(token, key)
        return claims if isinstance(claims, Refused) else self._policy.judge(claims, self._now())

    def _claims(self, token: str, key: RSAPublicKey) -> Mapping[str, object] | Refused:
        """Return the claims once the signature is good; they are not parsed before."""
        try:
            payload = self._jws.decode(token, key, algorithms=[ALGORITHM])
        except InvalidSignatureError:
            return Refused(Reason.BAD_SIGNATURE)
        except PyJWTError:
            return Refused(Reason.MALFORMED)
        claims = _json_object(payload)
        return Refused(Reason.MALFORMED) if claims is None else claims


def _bearer(authorization: Sequence[str]) -> str | Refused:
    """Return the one bearer token.

    The scheme is compared without case and followed by one or more spaces (RFC 9110, section
    11.1 and 11.4). A second header, even an equal one, is refused.
    """
    if len(authorization) != 1:
        return Refused(Reason.REPEATED if authorization else Reason.MISSING)
    scheme, _, rest = authorization[0].partition(" ")
    token = rest.lstrip(" ")
    if len(token) > MAX_TOKEN:
        return Refused(Reason.TOO_LARGE)
    if scheme.lower() != "bearer" or not _COMPACT.fullmatch(token):
        return Refused(Reason.MALFORMED)
    return token


def _key_id(token: str) -> str | Refused:
    """Return the `kid` of a token whose header is one that we accept."""
    header = _json_object(_base64url(token.partition(".")[0]))
    if header is None or "crit" in header or "b64" in header:
        return Refused(Reason.MALFORMED)
    if header.get("alg") != ALGORITHM:
        return Refused(Reason.WRONG_ALGORITHM)
    kid = header.get("kid")
    if not isinstance(kid, str) or not 0 < len(kid) <= MAX_KEY_ID:
        return Refused(Reason.MALFORMED)
    return kid


def _base64url(segment: str) -> bytes:
    """Decode one segment; what cannot be decoded is empty, which is no JSON either."""
    try:
        return urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    except binascii.Error:
        return b""


def _json_object(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
