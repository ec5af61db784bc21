"""Signatures of deliveries in the form of Standard Webhooks, for our side and the receiver's.

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md,
symmetric scheme `v1`. Standard library only, so that a receiver can import this module alone.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping

from listen_finalization.errors import ListenFinalizationError

ID_HEADER = "webhook-id"
TIMESTAMP_HEADER = "webhook-timestamp"
SIGNATURE_HEADER = "webhook-signature"
TOLERANCE_SECONDS = 300
"""How far a timestamp may be from the receiver's clock, either way; as the reference libraries."""
MIN_SECRET_BYTES = 24
MAX_SECRET_BYTES = 64
"""The spec's bounds of a symmetric secret, in bytes after decoding."""

_PREFIX = "whsec_"
_MAX_SIGNATURE_HEADER = 2_048
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


class InvalidSecretError(ListenFinalizationError):
    """A signing secret is `whsec_` and the base64 of 24 to 64 bytes."""


class SignatureError(ListenFinalizationError):
    """The delivery is not signed with this secret, or not in these minutes."""


def parse_secret(text: str) -> bytes:
    """Return the bytes of a secret given as `whsec_<base64>`, the form that people copy.

    Raises `InvalidSecretError`, which never holds the text.
    """
    secret = _decoded(text.removeprefix(_PREFIX)) if text.startswith(_PREFIX) else b""
    if not MIN_SECRET_BYTES <= len(secret) <= MAX_SECRET_BYTES:
        raise InvalidSecretError
    return secret


def format_secret(secret: bytes) -> str:
    """Return the `whsec_<base64>` text of a secret; `parse_secret` reads it back."""
    return _PREFIX + base64.b64encode(secret).decode("ascii")


def sign(secret: bytes, body: bytes, *, delivery_id: str, timestamp: int) -> str:
    """Return one `v1,<base64>` signature over `id.timestamp.body`; `timestamp` is Unix seconds."""
    content = f"{delivery_id}.{timestamp}.".encode() + body
    digest = hmac.new(secret, content, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode("ascii")


def headers(secret: bytes, body: bytes, *, delivery_id: str, timestamp: int) -> dict[str, str]:
    """Return the three headers of a signed delivery."""
    return {
        ID_HEADER: delivery_id,
        TIMESTAMP_HEADER: str(timestamp),
        SIGNATURE_HEADER: sign(secret, body, delivery_id=delivery_id, timestamp=timestamp),
    }


def verify(
    secret: bytes,
    body: bytes,
    *,
    headers: Mapping[str, str],
    now: float,
    tolerance: float = TOLERANCE_SECONDS,
) -> str:
    """Return the delivery id of a genuine delivery; the receiver drops an id that it knows.

    For receivers. `body` is the request's bytes as they came, before any parsing; `headers` is any
    mapping, names in any case; `now` is the receiver's Unix time and `tolerance` the seconds that
    the timestamp may differ from it. One good signature among several is enough, so that secrets
    can be rotated; each is compared in constant time. A retry is signed anew: its timestamp
    differs, its id does not. Raises `SignatureError` without saying which check failed.
    """
    given = {name.lower(): value for name, value in headers.items()}
    delivery_id, timestamp = given.get(ID_HEADER, ""), given.get(TIMESTAMP_HEADER, "")
    if not _ID.fullmatch(delivery_id) or not _TIMESTAMP.fullmatch(timestamp):
        raise SignatureError
    fresh = abs(now - int(timestamp)) <= tolerance
    content_signature = sign(secret, body, delivery_id=delivery_id, timestamp=int(timestamp))
    genuine = _is_among(content_signature, given.get(SIGNATURE_HEADER, ""))
    if not (fresh and genuine):
        raise SignatureError
    return delivery_id


def _is_among(signature: str, listed: str) -> bool:
    """Compare with each of the space-separated signatures; the header's size is bounded."""
    candidates = listed[:_MAX_SIGNATURE_HEADER].split(" ")
    expected = signature.encode()
    matches = [hmac.compare_digest(expected, one.encode(errors="replace")) for one in candidates]
    return any(matches)


def _decoded(text: str) -> bytes:
    """Return the bytes of strict base64, or none at all."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
