"""Names of one delivery, the same in every attempt, retry and replay of a revision."""

from __future__ import annotations

import base64
import hashlib


def idempotency_key(job_id: str, destination_id: str) -> str:
    """Return the `Idempotency-Key` of this job's effect at this destination.

    47 characters of `[A-Za-z0-9_-]`: `eff_` and unpadded base64url of a SHA-256. A job id stands
    for one (uid, conversation, revision), so a later revision has another key. Neither part can be
    read from it.
    """
    return "eff_" + _fingerprint("idempotency-key", job_id, destination_id)


def delivery_id(job_id: str, destination_id: str) -> str:
    """Return the `webhook-id` on which the receiver drops repeats.

    47 characters of `[A-Za-z0-9_-]`: `msg_` and unpadded base64url of a SHA-256. As stable and as
    silent as `idempotency_key`, and not derivable from it.
    """
    return "msg_" + _fingerprint("delivery-id", job_id, destination_id)


def _fingerprint(*parts: str) -> str:
    """Hash the parts, each after its length in bytes, so that no two lists hash the same bytes."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode("ascii")
