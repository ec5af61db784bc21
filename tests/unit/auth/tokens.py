"""Tokens as they should be, and the means to bend them."""

from __future__ import annotations

import datetime
import json
from base64 import urlsafe_b64encode
from functools import cache
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding

from listen_finalization.auth.outcome import Refused, Verified
from listen_finalization.auth.policy import PolicyName, TokenPolicy
from listen_finalization.auth.sources import StaticKeySource
from listen_finalization.auth.verifier import TokenVerifier

NOW = 1_760_000_000
KID = "key-1"
AUDIENCE = "https://finalizer.example/v1/conversation-finalization-jobs/run"
EMAIL = "invoker@canary-project.iam.gserviceaccount.com"
PROJECT = "canary-project"
UID = "canary-uid"

TASKS = TokenPolicy.google(PolicyName.TASKS, AUDIENCE, email=EMAIL)
USERS = TokenPolicy.firebase(PROJECT)


@cache
def private_key(name: str = "main") -> RSAPrivateKey:
    return generate_private_key(public_exponent=65537, key_size=2048)


def service_claims(**changes: Any) -> dict[str, Any]:
    claims: dict[str, Any] = {
        "iss": "https://accounts.google.com",
        "aud": AUDIENCE,
        "azp": "1234",
        "sub": "1234",
        "email": EMAIL,
        "email_verified": True,
        "iat": NOW,
        "exp": NOW + 3600,
    }
    return bent(claims, changes)


def user_claims(**changes: Any) -> dict[str, Any]:
    claims: dict[str, Any] = {
        "iss": f"https://securetoken.google.com/{PROJECT}",
        "aud": PROJECT,
        "sub": UID,
        "user_id": UID,
        "auth_time": NOW - 86_400,
        "iat": NOW,
        "exp": NOW + 3600,
        "firebase": {"identities": {}, "sign_in_provider": "custom"},
    }
    return bent(claims, changes)


def bent(claims: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Apply changes; a claim that is changed to `...` is left out."""
    return {name: value for name, value in {**claims, **changes}.items() if value is not ...}


def signed(claims: dict[str, Any], **headers: Any) -> str:
    """Sign with the main key; jwt.encode checks some claim types, so the JSON is signed as is."""
    header = bent({"kid": KID}, headers)
    algorithm = header.pop("alg", "RS256")
    return jwt.PyJWS().encode(json.dumps(claims).encode(), private_key(), algorithm, header)


def raw(header: object, claims: object, signature: bytes = b"") -> str:
    """Put a token together from any parts; `bytes` are taken as they are."""
    parts = [header, claims, signature]
    data = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in parts]
    return ".".join(urlsafe_b64encode(part).rstrip(b"=").decode() for part in data)


def signed_raw(header: object, payload: bytes) -> str:
    """Sign any header and payload with the main key, whatever a library thinks of them."""
    text = raw(header, payload).rpartition(".")[0]
    signature = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256).sign(
        text.encode(), private_key()
    )
    return f"{text}.{urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def known_keys() -> StaticKeySource:
    return StaticKeySource({KID: private_key().public_key()})


def verifier(policy: TokenPolicy = TASKS, *, now: float = NOW) -> TokenVerifier:
    return TokenVerifier(policy, known_keys(), now=lambda: now)


def bearer(token: str) -> list[str]:
    return [f"Bearer {token}"]


def certificate() -> str:
    key, subject = private_key(), x509.Name([])
    start = datetime.datetime(2020, 1, 1)
    built = x509.CertificateBuilder(subject, subject, key.public_key(), 1, start, start)
    return built.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


async def judge(token: str, policy: TokenPolicy = TASKS) -> Verified | Refused:
    return await verifier(policy).verify(bearer(token))
