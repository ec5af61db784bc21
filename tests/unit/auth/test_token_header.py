"""A token is never believed about its own algorithm, key or extensions."""

from __future__ import annotations

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from listen_finalization.auth.outcome import Reason, Refused, Verified
from listen_finalization.auth.sources import StaticKeySource
from listen_finalization.auth.verifier import TokenVerifier

from .tokens import (
    KID,
    NOW,
    TASKS,
    bearer,
    judge,
    private_key,
    raw,
    service_claims,
    signed,
    signed_raw,
)


@pytest.mark.parametrize("algorithm", ["RS384", "RS512", "PS256"])
async def test_another_rsa_algorithm_is_refused(algorithm: str) -> None:
    answer = await judge(signed(service_claims(), alg=algorithm))
    assert answer == Refused(Reason.WRONG_ALGORITHM)


@pytest.mark.parametrize("algorithm", ["none", "None", "rs256", "", None, ["RS256"], {}, 256])
async def test_an_odd_algorithm_is_refused(algorithm: object) -> None:
    for signature in (b"", b"x" * 256):
        token = raw({"alg": algorithm, "kid": KID}, service_claims(), signature)
        assert await judge(token) == Refused(Reason.WRONG_ALGORITHM)


async def test_the_public_key_is_no_hmac_secret() -> None:
    public = private_key().public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    text = raw({"alg": "HS256", "kid": KID}, service_claims()).rpartition(".")[0]
    sealed = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(
        text.encode(), pem
    )
    token = text + raw(b"", b"", sealed)[1:]
    assert await judge(token) == Refused(Reason.WRONG_ALGORITHM)
    posing = raw({"alg": "RS256", "kid": KID}, service_claims(), sealed)
    assert await judge(posing) == Refused(Reason.BAD_SIGNATURE)


@pytest.mark.parametrize("kid", [..., "", None, 7, True, ["key-1"], {"kid": "key-1"}, "k" * 257])
async def test_a_key_id_that_names_nothing_is_refused(kid: object) -> None:
    header = {"alg": "RS256"} if kid is ... else {"alg": "RS256", "kid": kid}
    assert await judge(raw(header, service_claims(), b"x" * 256)) == Refused(Reason.MALFORMED)


async def test_an_unknown_key_id_is_refused() -> None:
    token = signed(service_claims(), kid="key-2")
    assert await judge(token) == Refused(Reason.UNKNOWN_KEY)


async def test_a_signature_of_another_key_is_refused() -> None:
    keys = StaticKeySource({KID: private_key("other").public_key()})
    checks = TokenVerifier(TASKS, keys, now=lambda: NOW)
    answer = await checks.verify(bearer(signed(service_claims())))
    assert answer == Refused(Reason.BAD_SIGNATURE)


async def test_a_changed_payload_is_refused() -> None:
    head, _, signature = signed(service_claims()).split(".")
    forged = raw(b"", service_claims(sub="5678")).split(".")[1]
    assert await judge(f"{head}.{forged}.{signature}") == Refused(Reason.BAD_SIGNATURE)


@pytest.mark.parametrize("name", ["jku", "jwk", "x5u", "x5c", "x5t"])
async def test_a_key_that_the_token_brings_has_no_effect(name: str) -> None:
    jwk = jwt.algorithms.RSAAlgorithm.to_jwk(private_key("thief").public_key(), as_dict=True)
    brought = jwk if name == "jwk" else "https://thief.example/keys"
    header = {"alg": "RS256", "kid": KID, name: brought}
    assert isinstance(await judge(signed(service_claims(), **{name: brought})), Verified)
    text = raw(header, service_claims()).rpartition(".")[0]
    stolen = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256).sign(
        text.encode(), private_key("thief")
    )
    token = text + raw(b"", b"", stolen)[1:]
    assert await judge(token) == Refused(Reason.BAD_SIGNATURE)


@pytest.mark.parametrize(
    "extra", [{"crit": ["exp"]}, {"crit": []}, {"crit": ["b64"], "b64": False}, {"b64": True}]
)
async def test_a_critical_extension_is_refused(extra: dict[str, object]) -> None:
    token = signed_raw({"alg": "RS256", "kid": KID, **extra}, b"{}")
    assert await judge(token) == Refused(Reason.MALFORMED)


@pytest.mark.parametrize(
    "payload", [b"", b"[]", b"7", b"null", b'"x"', b"\xff", b"{", b"[" * 5000, b'{"a":}']
)
async def test_a_payload_that_is_no_object_is_refused(payload: bytes) -> None:
    answer = await judge(signed_raw({"alg": "RS256", "kid": KID}, payload))
    assert answer == Refused(Reason.MALFORMED)


@pytest.mark.parametrize("header", [b"", b"[]", b"\xff\xff", b"{", b"[" * 5000, b"null", b'"x"'])
async def test_a_header_that_is_no_object_is_refused(header: bytes) -> None:
    assert await judge(raw(header, service_claims(), b"x")) == Refused(Reason.MALFORMED)
