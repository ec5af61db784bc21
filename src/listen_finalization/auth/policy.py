"""What a token must claim: pure rules, applied once its signature is good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from listen_finalization.auth.outcome import Reason, Refused, Verified
from listen_finalization.domain.identity import identifier_fault
from listen_finalization.errors import ListenFinalizationError

CLOCK_ALLOWANCE = 10
"""Seconds by which the issuer's clock may differ from ours, in both directions, end included."""

MAX_LIFETIME = 3600
"""Seconds from `iat` to `exp`; Google and Firebase issue ID tokens for one hour."""

MAX_SUBJECT = 255
"""Characters of `sub`: OpenID Connect Core 1.0, section 2."""

GOOGLE_ISSUERS = frozenset({"https://accounts.google.com", "accounts.google.com"})
"""Both spellings are Google's (OpenID Connect reference, "Validating an ID token")."""

FIREBASE_ISSUER = "https://securetoken.google.com/"
LOCAL_SERVICE_ISSUER = "https://services.listen-finalization.invalid"
LOCAL_USER_ISSUER = "https://users.listen-finalization.invalid/"


class PolicyError(ListenFinalizationError):
    """A token policy cannot be built."""


class PolicyName(StrEnum):
    """Whose tokens a policy is for."""

    TASKS = "tasks"
    PUSHER = "pusher"
    SCHEDULER = "scheduler"
    USERS = "users"


@dataclass(frozen=True, slots=True)
class TokenPolicy:
    """What one entrance demands of a token.

    `aud` must be the string `audience`: exact, case-sensitive, and never a list. `iss` is one of
    `issuers`. Of a service, which always has a configured `email`, `email` must be equal,
    case-sensitive, and `email_verified` literally true. Of a user, `sub` is the uid, under the
    rules of an identifier of the outbox, and `auth_time`, if there, lies in the past.
    Of every token `iat`, `exp` (integers) and `sub` (a string) are required.

    Raises PolicyError, naming policy and field, never a value, for anything blank or padded.
    """

    name: PolicyName
    audience: str = field(repr=False)
    issuers: frozenset[str] = field(repr=False, kw_only=True)
    email: str | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        self._demand("audience", self.audience)
        if self.name is not PolicyName.USERS:
            self._demand("email", self.email)
        elif self.email is not None:
            raise PolicyError(f"{self.name} token policy: email is for services only")
        if not self.issuers or not isinstance(self.issuers, frozenset):
            raise PolicyError(f"{self.name} token policy: issuers must be a non-empty frozenset")
        for issuer in self.issuers:
            self._demand("issuer", issuer)

    @classmethod
    def google(cls, name: PolicyName, audience: str, *, email: str) -> TokenPolicy:
        """Return the policy for Google-issued OIDC tokens of one service account."""
        return cls(name, audience, issuers=GOOGLE_ISSUERS, email=email)

    @classmethod
    def firebase(cls, project: str) -> TokenPolicy:
        """Return the policy for Firebase ID tokens ("Verify ID tokens", third-party library)."""
        return cls(PolicyName.USERS, project, issuers=frozenset({f"{FIREBASE_ISSUER}{project}"}))

    @classmethod
    def local_service(cls, name: PolicyName, audience: str, *, email: str) -> TokenPolicy:
        """Return the policy for the tokens of the local task issuer (embedded mode, tests)."""
        return cls(name, audience, issuers=frozenset({LOCAL_SERVICE_ISSUER}), email=email)

    @classmethod
    def local_users(cls, project: str) -> TokenPolicy:
        """Return the policy for the tokens of the local user issuer (embedded mode, tests)."""
        return cls(PolicyName.USERS, project, issuers=frozenset({f"{LOCAL_USER_ISSUER}{project}"}))

    def judge(self, claims: Mapping[str, object], now: float) -> Verified | Refused:
        """Decide on claims whose signature is good; `now` is wall time in epoch seconds."""
        subject = claims.get("sub")
        if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT:
            return Refused(Reason.BAD_CLAIMS)
        reason = self._scope(claims) or _times(claims, now)
        if reason is None and self.name is PolicyName.USERS:
            reason = _user(subject, claims, now=now)
        elif reason is None:
            reason = self._service(claims)
        return Verified(subject, self.email) if reason is None else Refused(reason)

    def _scope(self, claims: Mapping[str, object]) -> Reason | None:
        issuer, audience = claims.get("iss"), claims.get("aud")
        if not isinstance(issuer, str) or issuer not in self.issuers:
            return Reason.WRONG_ISSUER
        if not isinstance(audience, str) or audience != self.audience:
            return Reason.WRONG_AUDIENCE
        return None

    def _service(self, claims: Mapping[str, object]) -> Reason | None:
        if claims.get("email_verified") is not True:
            return Reason.UNVERIFIED_EMAIL
        return None if claims.get("email") == self.email else Reason.WRONG_IDENTITY

    def _demand(self, setting: str, value: object) -> None:
        if not isinstance(value, str) or not value or value != value.strip():
            raise PolicyError(
                f"{self.name} token policy: {setting} must be one non-blank string, not padded"
            )


def _times(claims: Mapping[str, object], now: float) -> Reason | None:
    issued, expires = _integer(claims, "iat"), _integer(claims, "exp")
    begins = _integer(claims, "nbf") if "nbf" in claims else issued
    if issued is None or expires is None or begins is None:
        return Reason.BAD_CLAIMS
    if now > expires + CLOCK_ALLOWANCE:
        return Reason.EXPIRED
    if max(issued, begins) > now + CLOCK_ALLOWANCE:
        return Reason.NOT_YET_VALID
    in_bounds = 0 < expires - issued <= MAX_LIFETIME + CLOCK_ALLOWANCE
    return None if in_bounds else Reason.LIFETIME


def _user(subject: str, claims: Mapping[str, object], *, now: float) -> Reason | None:
    if identifier_fault(subject) is not None:
        return Reason.BAD_CLAIMS
    if "auth_time" not in claims:
        return None
    signed_in = _integer(claims, "auth_time")
    if signed_in is None:
        return Reason.BAD_CLAIMS
    return Reason.NOT_YET_VALID if signed_in > now + CLOCK_ALLOWANCE else None


def _integer(claims: Mapping[str, object], name: str) -> int | None:
    """Return an integer claim; a bool, float or text is none, whatever it looks like."""
    value = claims.get(name)
    return value if type(value) is int else None
