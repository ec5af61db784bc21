"""What of a key document is taken, and for how long."""

from __future__ import annotations

import json

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from listen_finalization.auth.fetch import DEFAULT_AGE, MAX_AGE, MIN_AGE
from listen_finalization.auth.fetch import fresh_for as fresh_seconds
from listen_finalization.auth.issuer import LocalIssuer
from listen_finalization.auth.keyset import parse_keys

from .tokens import certificate, private_key


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, DEFAULT_AGE),
        ({"Cache-Control": "public, max-age=3600, must-revalidate"}, 3600),
        ({"Cache-Control": "MAX-AGE=3600"}, 3600),
        ({"Cache-Control": 's-maxage=7200, max-age="3600"'}, 3600),
        ({"Cache-Control": "s-maxage=7200"}, DEFAULT_AGE),
        ({"Cache-Control": "max-age=3600", "Age": "600"}, 3000),
        ({"Cache-Control": "max-age=3600", "Age": "garbage"}, 3600),
        ({"Cache-Control": "max-age=3600", "Age": "99999"}, MIN_AGE),
        ({"Cache-Control": "max-age=0"}, MIN_AGE),
        ({"Cache-Control": "max-age=-5"}, DEFAULT_AGE),
        ({"Cache-Control": "max-age=garbage"}, DEFAULT_AGE),
        ({"Cache-Control": "no-store"}, MIN_AGE),
        ({"Cache-Control": "no-cache, max-age=3600"}, MIN_AGE),
        ({"Cache-Control": "max-age=31536000"}, MAX_AGE),
        ({"Cache-Control": "max-age=99999999999999999999"}, MAX_AGE),
    ],
)
def test_freshness_is_the_servers_within_our_bounds(
    headers: dict[str, str], seconds: float
) -> None:
    assert fresh_seconds(httpx.Headers(headers)) == seconds


def _entry(**changes: object) -> dict[str, object]:
    return {**LocalIssuer(private_key()).jwks()["keys"][0], "kid": "a", **changes}


def _elliptic() -> dict[str, object]:
    return {"kid": "e", "kty": "EC", "crv": "P-256", "x": "AQ", "y": "AQ"}


@pytest.mark.parametrize(
    "entry",
    [
        _elliptic(),
        _entry(use="enc"),
        _entry(alg="RS512"),
        _entry(kty="oct", k="c2VjcmV0"),
        _entry(kid=7),
        _entry(n="AQAB"),
        _entry(n=7),
        _entry(n="!!"),
        _entry(e="AQ"),
        _entry(e=None),
        _entry(n="_" * 4096),
    ],
)
def test_an_entry_that_is_no_rs256_key_is_left_out(entry: dict[str, object]) -> None:
    document = {"keys": [entry, _entry(kid="good")]}
    assert set(parse_keys(json.dumps(document).encode())) == {"good"}


def test_a_map_may_hold_bare_public_keys_and_no_other_kind() -> None:
    curve = ec.generate_private_key(ec.SECP256R1()).public_key()
    small = rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key()

    def pem(key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey) -> str:
        return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    document = {"a": pem(private_key().public_key()), "curve": pem(curve), "small": pem(small)}
    assert set(parse_keys(json.dumps(document).encode())) == {"a"}


DOCUMENTS = st.recursive(
    st.none() | st.integers() | st.text() | st.just(certificate()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["keys", "kid", "a"]), inner)
        | st.fixed_dictionaries({"kid": inner, "kty": st.just("RSA"), "n": inner, "e": inner})
    ),
    max_leaves=8,
)


@given(DOCUMENTS)
def test_any_document_is_read_without_raising(document: object) -> None:
    keys = parse_keys(json.dumps(document).encode())
    assert all(isinstance(key, rsa.RSAPublicKey) for key in keys.values())
