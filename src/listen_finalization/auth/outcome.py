"""The two answers of a verifier: a proven caller, or a closed reason why not."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus


class Reason(StrEnum):
    """Why a caller was refused: closed, so that it may be a label, a log field or an answer."""

    MISSING = "missing"
    REPEATED = "repeated"
    TOO_LARGE = "too_large"
    MALFORMED = "malformed"
    WRONG_ALGORITHM = "wrong_algorithm"
    UNKNOWN_KEY = "unknown_key"
    KEYS_UNAVAILABLE = "keys_unavailable"
    BAD_SIGNATURE = "bad_signature"
    BAD_CLAIMS = "bad_claims"
    WRONG_ISSUER = "wrong_issuer"
    WRONG_AUDIENCE = "wrong_audience"
    EXPIRED = "expired"
    NOT_YET_VALID = "not_yet_valid"
    LIFETIME = "lifetime"
    UNVERIFIED_EMAIL = "unverified_email"
    WRONG_IDENTITY = "wrong_identity"


_STATUS = {
    Reason.UNVERIFIED_EMAIL: HTTPStatus.FORBIDDEN,
    Reason.WRONG_IDENTITY: HTTPStatus.FORBIDDEN,
    Reason.KEYS_UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}


@dataclass(frozen=True, slots=True)
class Refused:
    """A caller that did not prove who it is, and nothing of what it sent."""

    reason: Reason

    @property
    def status(self) -> int:
        """401; 403 for a good token of somebody else; 503 where no key could be fetched."""
        return _STATUS.get(self.reason, HTTPStatus.UNAUTHORIZED).value


@dataclass(frozen=True, slots=True)
class Verified:
    """A proven caller. `subject` is the uid of a user; `email` is set for services only."""

    subject: str = field(repr=False)
    email: str | None = field(default=None, repr=False)
