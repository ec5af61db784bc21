"""Destinations, deliveries and senders are checked when they are made."""

from __future__ import annotations

import pytest

from listen_finalization.processing.addresses import AddressRefusedError
from listen_finalization.processing.delivery import Delivery, Destination, InvalidDeliveryError
from listen_finalization.processing.webhooks import SenderConfigError, WebhookSender

from .receivers import BODY, SECRET


@pytest.mark.parametrize(
    "change",
    [
        {"id": ""},
        {"id": "x" * 65},
        {"id": "a b"},
        {"id": "a\n"},
        {"id": "\u00fc"},
        {"secret": b""},
        {"secret": bytes(23)},
        {"secret": bytes(65)},
    ],
)
def test_a_destination_is_checked_at_construction(change: dict[str, object]) -> None:
    fields = {"id": "crm", "url": "https://example.com/", "secret": SECRET} | change
    with pytest.raises(InvalidDeliveryError):
        Destination(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["", "ftp://example.com/", "https://10.0.0.1/", "https://a@b.c/"])
def test_a_destination_with_a_forbidden_url_cannot_be_made(url: str) -> None:
    with pytest.raises(AddressRefusedError):
        Destination(id="crm", url=url, secret=SECRET)


@pytest.mark.parametrize("bad", ["", "x" * 65, "a\r\nX-Other: 1", "a b"])
def test_a_key_that_could_break_a_header_cannot_be_made(bad: str) -> None:
    destination = Destination(id="crm", url="https://example.com/", secret=SECRET)
    with pytest.raises(InvalidDeliveryError):
        Delivery(destination, bad, "msg_1", BODY)
    with pytest.raises(InvalidDeliveryError):
        Delivery(destination, "eff_1", bad, BODY)


@pytest.mark.parametrize("limit", [0, -1, 60.1, float("inf"), float("nan")])
def test_a_sender_without_a_sane_time_limit_cannot_be_made(limit: float) -> None:
    with pytest.raises(SenderConfigError):
        WebhookSender(time_limit=limit)


@pytest.mark.parametrize("connections", [0, -1, 257])
def test_a_sender_without_a_sane_bound_of_connections_cannot_be_made(connections: int) -> None:
    with pytest.raises(SenderConfigError):
        WebhookSender(connections=connections)
