"""Reads the documents in which a key server publishes its keys; no network here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from cryptography.x509 import load_pem_x509_certificate
from jwt import PyJWTError
from jwt.algorithms import RSAAlgorithm

MIN_KEY_BITS, MAX_KEY_BITS = 2048, 8192
_CERTIFICATE = "-----BEGIN CERTIFICATE-----"


def parse_keys(document: bytes) -> dict[str, RSAPublicKey]:
    """Return the RSA keys of a JWKS (RFC 7517) or of a map `{kid: PEM}`, told apart by shape.

    An entry of another kind, use or size is left out, a private one is taken as its public half;
    a document that is neither shape has no keys. The dates of a certificate are not read: the
    server retires a key by no longer publishing it, as google-auth and Firebase Admin assume.
    """
    try:
        value = json.loads(document)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    keys = value.get("keys")
    found = _from_jwks(keys) if isinstance(keys, list) else _from_map(value)
    return {kid: key for kid, key in found if MIN_KEY_BITS <= key.key_size <= MAX_KEY_BITS}


def _from_jwks(entries: list[object]) -> Iterator[tuple[str, RSAPublicKey]]:
    for entry in entries:
        if not isinstance(entry, dict) or not _signs(entry):
            continue
        kid, key = entry.get("kid"), _from_jwk(entry)
        if isinstance(kid, str) and key is not None:
            yield kid, key


def _from_map(entries: Mapping[str, object]) -> Iterator[tuple[str, RSAPublicKey]]:
    for kid, pem in entries.items():
        key = _from_pem(pem) if isinstance(pem, str) else None
        if key is not None:
            yield kid, key


def _signs(entry: Mapping[str, object]) -> bool:
    """Say whether a JWK is meant for RS256 signatures, or does not say what it is meant for."""
    return entry.get("use", "sig") == "sig" and entry.get("alg", "RS256") == "RS256"


def _from_jwk(entry: Mapping[str, object]) -> RSAPublicKey | None:
    public = {name: entry[name] for name in ("kty", "n", "e") if name in entry}
    try:
        key = RSAAlgorithm.from_jwk(public)
    except (PyJWTError, ValueError, TypeError, AttributeError):
        return None
    return key if isinstance(key, RSAPublicKey) else None


def _from_pem(pem: str) -> RSAPublicKey | None:
    try:
        data = pem.encode()
        certified = pem.lstrip().startswith(_CERTIFICATE)
        key = (
            load_pem_x509_certificate(data).public_key() if certified else load_pem_public_key(data)
        )
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, RSAPublicKey) else None
