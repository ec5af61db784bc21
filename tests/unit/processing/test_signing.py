"""Standard Webhooks signatures: the published examples, and what a receiver must refuse."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listen_finalization.processing import signing

SECRET = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
BODY = b'{"test": 2432232314}'
ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
NOW = 1_614_265_330
SIGNED = {
    "webhook-id": ID,
    "webhook-timestamp": str(NOW),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}


def test_our_signature_is_that_of_the_reference_libraries() -> None:
    # The example of the Standard Webhooks test suites ("sign function works").
    assert signing.headers(SECRET, BODY, delivery_id=ID, timestamp=NOW) == SIGNED


def test_our_signature_is_that_of_the_published_manual() -> None:
    # https://docs.svix.com/receiving/verifying-payloads/how-manual
    signature = signing.sign(
        base64.b64decode("plJ3nmyCDGBKInavdOK15jsl"),
        b'{"event_type":"ping","data":{"success":true}}',
        delivery_id="msg_loFOjxBNrRLzqYUf",
        timestamp=1_731_705_121,
    )
    assert signature == "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="


def test_a_receiver_gets_the_id_on_which_it_drops_repeats() -> None:
    assert signing.verify(SECRET, BODY, headers=SIGNED, now=NOW) == ID


def test_header_names_may_come_in_any_case() -> None:
    shouted = {name.title(): value for name, value in SIGNED.items()}
    assert signing.verify(SECRET, BODY, headers=shouted, now=NOW) == ID


@pytest.mark.parametrize("off", [-300, -299.5, 0, 299.5, 300])
def test_a_timestamp_within_five_minutes_is_accepted(off: float) -> None:
    assert signing.verify(SECRET, BODY, headers=SIGNED, now=NOW + off) == ID


@pytest.mark.parametrize("off", [-301, 301, 86_400, float("inf"), float("nan")])
def test_a_timestamp_beyond_five_minutes_is_refused(off: float) -> None:
    with pytest.raises(signing.SignatureError):
        signing.verify(SECRET, BODY, headers=SIGNED, now=NOW + off)


def test_one_good_signature_among_several_is_enough_while_secrets_rotate() -> None:
    listed = f"v2,abc v1,{'A' * 44} {SIGNED['webhook-signature']} v1a,xyz"
    headers = SIGNED | {"webhook-signature": listed}
    assert signing.verify(SECRET, BODY, headers=headers, now=NOW) == ID


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-id": "msg_other"},
        {"webhook-id": ""},
        {"webhook-id": "a.b"},
        {"webhook-id": "x" * 65},
        {"webhook-timestamp": str(NOW + 1)},
        {"webhook-timestamp": ""},
        {"webhook-timestamp": f" {NOW}"},
        {"webhook-timestamp": f"{NOW}.0"},
        {"webhook-timestamp": "-1"},
        {"webhook-timestamp": "1e9"},
        {"webhook-timestamp": "\uff11\uff16"},
        {"webhook-timestamp": "9" * 30},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": SIGNED["webhook-signature"].replace("v1,", "v2,")},
        {"webhook-signature": SIGNED["webhook-signature"].removeprefix("v1,")},
        {"webhook-signature": SIGNED["webhook-signature"] + "="},
        {"webhook-signature": "v1,\u00fc\udc80"},
        {"webhook-signature": " " * 5_000 + SIGNED["webhook-signature"]},
    ],
)
def test_a_changed_header_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(signing.SignatureError):
        signing.verify(SECRET, BODY, headers=SIGNED | change, now=NOW)


@pytest.mark.parametrize("delivery_id", ["", "msg.1", "msg 1", "x" * 65])
def test_an_id_that_could_move_the_border_of_the_signed_parts_is_refused(delivery_id: str) -> None:
    headers = signing.headers(SECRET, BODY, delivery_id=delivery_id, timestamp=NOW)
    with pytest.raises(signing.SignatureError):
        signing.verify(SECRET, BODY, headers=headers, now=NOW)


@pytest.mark.parametrize("name", SIGNED)
def test_a_missing_header_is_refused(name: str) -> None:
    left = {key: value for key, value in SIGNED.items() if key != name}
    with pytest.raises(signing.SignatureError):
        signing.verify(SECRET, BODY, headers=left, now=NOW)


@given(body=st.binary(max_size=64))
def test_a_changed_body_is_refused(body: bytes) -> None:
    if body == BODY:
        return
    with pytest.raises(signing.SignatureError):
        signing.verify(SECRET, body, headers=SIGNED, now=NOW)


def test_another_secret_is_refused() -> None:
    with pytest.raises(signing.SignatureError):
        signing.verify(bytes(24), BODY, headers=SIGNED, now=NOW)


@given(secret=st.binary(min_size=24, max_size=64))
def test_a_secret_survives_its_written_form(secret: bytes) -> None:
    assert signing.parse_secret(signing.format_secret(secret)) == secret


@pytest.mark.parametrize(
    "text",
    [
        "",
        "whsec_",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        " whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS\u00fc",
        "whsec_" + base64.b64encode(bytes(23)).decode(),
        "whsec_" + base64.b64encode(bytes(65)).decode(),
    ],
)
def test_a_text_that_is_no_secret_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(signing.InvalidSecretError) as refused:
        signing.parse_secret(text)
    assert refused.value.args == (signing.InvalidSecretError.__doc__,)
    assert refused.value.__context__ is None
