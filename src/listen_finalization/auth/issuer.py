"""Signs tokens in embedded mode and in tests. Its issuers are accepted in no other mode."""

from __future__ import annotations

import json
import math
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from jwt import encode
from jwt.algorithms import RSAAlgorithm

from listen_finalization.auth.keyfile import KeyFileError, open_key
from listen_finalization.auth.policy import LOCAL_SERVICE_ISSUER, LOCAL_USER_ISSUER, MAX_LIFETIME
from listen_finalization.auth.sources import StaticKeySource
from listen_finalization.domain.identity import identifier_fault

__all__ = ["REUSE_SECONDS", "KeyFileError", "LocalIssuer", "TokenMinter"]

REUSE_SECONDS = 300
"""Seconds for which a minter hands out one token. Real queues deliver tokens up to an hour old."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")


class LocalIssuer:
    """One private key and the tokens that it signs.

    An installation has two, `tasks` and `users`, with two keys: neither's tokens pass where the
    other's are expected, by key, issuer and audience. repr and pickle do not reveal the key.
    """

    def __init__(self, key: RSAPrivateKey, *, now: Callable[[], float] = time.time) -> None:
        """Bind a key; `now` is wall time in epoch seconds."""
        self._key = key
        self._now = now
        self._kid = thumbprint(key.public_key())

    @classmethod
    def open(
        cls, directory: Path, name: str, *, now: Callable[[], float] = time.time
    ) -> LocalIssuer:
        """Open the issuer whose key is `<directory>/<name>.key.pem`, made here if it is missing.

        `name` is 1 to 32 of `[a-z0-9-]`, a letter first. Raises KeyFileError.
        """
        if not _NAME.fullmatch(name):
            raise KeyFileError("the name of a local issuer is 1 to 32 of [a-z0-9-], a letter first")
        return cls(open_key(directory / f"{name}.key.pem"), now=now)

    @property
    def kid(self) -> str:
        """The RFC 7638 thumbprint of the public key."""
        return self._kid

    def now(self) -> float:
        """Return the wall time by which this issuer dates its tokens, in epoch seconds."""
        return self._now()

    def mint_task_token(self, audience: str, email: str, *, lifetime: int = MAX_LIFETIME) -> str:
        """Return a service token in the shape of Google's OIDC tokens, good for `lifetime` s."""
        claims = {"aud": audience, "email": email, "email_verified": True, "sub": "local-service"}
        return self._sign(LOCAL_SERVICE_ISSUER, claims, lifetime=lifetime)

    def mint_user_token(self, uid: str, project: str, *, lifetime: int = MAX_LIFETIME) -> str:
        """Return a user token in the shape of a Firebase ID token, good for `lifetime` seconds.

        Raises ValueError, without the value, where `uid` is no identifier of the outbox.
        """
        fault = identifier_fault(uid)
        if fault is not None:
            raise ValueError(f"uid {fault}")
        claims = {"aud": project, "sub": uid, "user_id": uid, "auth_time": int(self._now())}
        return self._sign(f"{LOCAL_USER_ISSUER}{project}", claims, lifetime=lifetime)

    def jwks(self) -> dict[str, list[dict[str, str]]]:
        """Return the public half as a JWKS document (RFC 7517)."""
        public = _public_members(self._key.public_key())
        return {"keys": [{**public, "kid": self._kid, "use": "sig", "alg": "RS256"}]}

    def key_source(self) -> StaticKeySource:
        """Return the key source that knows this issuer's key and no other."""
        return StaticKeySource({self._kid: self._key.public_key()})

    def __reduce__(self) -> str:
        raise TypeError("a local issuer cannot be pickled or copied")

    def _sign(self, issuer: str, claims: dict[str, object], *, lifetime: int) -> str:
        if not 0 < lifetime <= MAX_LIFETIME:
            raise ValueError(f"lifetime must be 1 to {MAX_LIFETIME} seconds")
        issued = int(self._now())
        dated = {"iss": issuer, "iat": issued, "exp": issued + lifetime, **claims}
        return encode(dated, self._key, algorithm="RS256", headers={"kid": self._kid})


class TokenMinter:
    """The dispatcher's token: minted anew at the latest every REUSE_SECONDS of wall time.

    A token lives twice as long as it is handed out, so that one is never near its end on arrival.
    A wall clock that was set, forward or back, makes the next call mint.
    """

    def __init__(self, issuer: LocalIssuer, *, audience: str, email: str) -> None:
        self._issuer = issuer
        self._audience = audience
        self._email = email
        self._token = ""
        self._minted = -math.inf

    def token(self) -> str:
        """Return a task token that is good for at least REUSE_SECONDS more."""
        now = self._issuer.now()
        if not 0 <= now - self._minted < REUSE_SECONDS:
            self._token = self._issuer.mint_task_token(
                self._audience, self._email, lifetime=2 * REUSE_SECONDS
            )
            self._minted = now
        return self._token


def thumbprint(key: RSAPublicKey) -> str:
    """Return the RFC 7638 thumbprint: base64url of the SHA-256 of the required members."""
    members = _public_members(key)
    text = json.dumps(members, sort_keys=True, separators=(",", ":"))
    return urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode()


def _public_members(key: RSAPublicKey) -> dict[str, str]:
    jwk = RSAAlgorithm.to_jwk(key, as_dict=True)
    return {name: str(jwk[name]) for name in ("kty", "n", "e")}
