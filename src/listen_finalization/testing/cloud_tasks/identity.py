"""Tokens like Google's: the issuer, the claims and the key document that a verifier sees.

Only the key differs, so a verifier that is given this key document judges these tokens exactly as
it judges Google's. Meant for tests and development: whoever runs the queue is every account.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from jwt import encode

from listen_finalization.auth.issuer import LocalIssuer
from listen_finalization.auth.keyfile import KEY_BITS
from listen_finalization.auth.policy import MAX_LIFETIME

ISSUER = "https://accounts.google.com"
KEY_MAX_AGE = 3_600
"""Seconds for which the key document says that it is fresh."""


class TaskIdentity:
    """Signs the OIDC tokens of deliveries and publishes its keys, newest first."""

    def __init__(
        self, key: RSAPrivateKey | None = None, *, now: Callable[[], float] = time.time
    ) -> None:
        """Take a key, or make one; `now` is wall time in epoch seconds."""
        self._now = now
        self._keys = [key or _new_key()]

    def token(self, email: str, audience: str) -> str:
        """Return a token of that service account, good for one hour."""
        subject = str(int(sha256(email.encode()).hexdigest(), 16) % 10**21)
        issued = int(self._now())
        claims = {
            "aud": audience,
            "azp": subject,
            "email": email,
            "email_verified": True,
            "exp": issued + MAX_LIFETIME,
            "iat": issued,
            "iss": ISSUER,
            "sub": subject,
        }
        key = self._keys[0]
        return encode(claims, key, algorithm="RS256", headers={"kid": LocalIssuer(key).kid})

    def rotate(self) -> None:
        """Sign with a new key from now on; older keys stay published."""
        self._keys.insert(0, _new_key())

    def jwks(self) -> Mapping[str, Sequence[Mapping[str, str]]]:
        """Return the key document (RFC 7517)."""
        return {"keys": [one for key in self._keys for one in LocalIssuer(key).jwks()["keys"]]}


def _new_key() -> RSAPrivateKey:
    return generate_private_key(public_exponent=65537, key_size=KEY_BITS)
