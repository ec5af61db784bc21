"""The values of a delivery: where it goes, what it says, what came of it and what follows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from listen_finalization.domain.codes import EffectCode
from listen_finalization.errors import ListenFinalizationError
from listen_finalization.processing import signing
from listen_finalization.processing.addresses import parse_url

_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,64}")


class InvalidDeliveryError(ListenFinalizationError):
    """An id or key is 1 to 64 of [A-Za-z0-9_-], and a secret is 24 to 64 bytes."""


class Verdict(StrEnum):
    """What follows from a result. `drop` is final and shown to the operator."""

    DELIVERED = "delivered"
    RETRY = "retry"
    DROP = "drop"


VERDICTS: Mapping[EffectCode, Verdict] = MappingProxyType(
    {
        EffectCode.HTTP_2XX: Verdict.DELIVERED,
        EffectCode.HTTP_3XX: Verdict.DROP,
        EffectCode.HTTP_4XX: Verdict.DROP,
        EffectCode.HTTP_408: Verdict.RETRY,
        EffectCode.HTTP_425: Verdict.RETRY,
        EffectCode.HTTP_429: Verdict.RETRY,
        EffectCode.HTTP_5XX: Verdict.RETRY,
        EffectCode.TIMEOUT: Verdict.RETRY,
        EffectCode.CONNECT_FAILED: Verdict.RETRY,
        EffectCode.TLS_FAILED: Verdict.RETRY,
        EffectCode.DNS_FAILED: Verdict.RETRY,
        EffectCode.RESET: Verdict.RETRY,
        EffectCode.PROTOCOL_ERROR: Verdict.RETRY,
        EffectCode.ADDRESS_REFUSED: Verdict.DROP,
    }
)
"""Every code that a delivery can come to, and what follows from it."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A receiver of one user's finished conversations; url and secret are in no repr.

    `id` is 1 to 64 of `[A-Za-z0-9_-]`; `secret` is 24 to 64 bytes (`signing.parse_secret`). The URL
    is judged by its widest rule here; whether loopback is admitted is the sender's setting. Who
    sends skips a destination that is not enabled. Raises `InvalidDeliveryError` or
    `AddressRefusedError`.
    """

    id: str
    url: str = field(repr=False)
    secret: bytes = field(repr=False)
    enabled: bool = True

    def __post_init__(self) -> None:
        size = len(self.secret)
        if not signing.MIN_SECRET_BYTES <= size <= signing.MAX_SECRET_BYTES:
            raise InvalidDeliveryError
        _require_token(self.id)
        parse_url(self.url, admit_loopback=True)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What is sent. Key, id and body are the same bytes in every attempt.

    `idempotency_key` and `delivery_id` come from `domain.effect_key`; `body` is JSON, and content.
    Raises `InvalidDeliveryError`.
    """

    destination: Destination
    idempotency_key: str
    delivery_id: str
    body: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _require_token(self.idempotency_key)
        _require_token(self.delivery_id)


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """What came of one attempt: a code of `VERDICTS`, nothing of the receiver's answer."""

    code: EffectCode

    @property
    def verdict(self) -> Verdict:
        return VERDICTS[self.code]


def _require_token(text: str) -> None:
    if not _TOKEN.fullmatch(text):
        raise InvalidDeliveryError
