"""The production store: three ports on Cloud Firestore."""

from __future__ import annotations

from listen_finalization.errors import ExtraMissingError

try:
    import google.cloud.firestore_v1  # noqa: F401 -- only whether it is there
except ImportError as error:
    raise ExtraMissingError("google") from error

from listen_finalization.outbox.firestore.store import FirestoreStore

__all__ = ["FirestoreStore"]
