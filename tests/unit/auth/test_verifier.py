"""Cases ath-clock-skew, ath-audience, ath-wrong-caller and ath-forged-headers, with real tokens."""

from __future__ import annotations

from typing import Any
from unittest.mock import AsyncMock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from listen_finalization.auth.outcome import Reason, Refused, Verified
from listen_finalization.auth.policy import TokenPolicy
from listen_finalization.auth.sources import NoKey
from listen_finalization.auth.verifier import MAX_TOKEN, TokenVerifier

from .tokens import (
    AUDIENCE,
    EMAIL,
    KID,
    NOW,
    PROJECT,
    TASKS,
    UID,
    USERS,
    bearer,
    judge,
    known_keys,
    raw,
    service_claims,
    signed,
    signed_raw,
    user_claims,
    verifier,
)


async def reason_for(claims: dict[str, Any], policy: TokenPolicy = TASKS) -> Reason | None:
    answer = await judge(signed(claims), policy)
    return answer.reason if isinstance(answer, Refused) else None


async def test_the_configured_invoker_passes() -> None:
    assert await judge(signed(service_claims())) == Verified("1234", EMAIL)


async def test_a_user_passes_by_its_uid_and_shows_no_email() -> None:
    claims = user_claims(email="canary@example.com", email_verified=True)
    assert await judge(signed(claims), USERS) == Verified(UID)


@pytest.mark.parametrize("span", [0, 1, 5, 9, 10])
@pytest.mark.parametrize("policy", [TASKS, USERS], ids=["tasks", "users"])
async def test_a_clock_difference_within_the_allowance_passes(
    span: int, policy: TokenPolicy
) -> None:
    make = service_claims if policy is TASKS else user_claims
    early = make(iat=NOW + span, exp=NOW + 3600)
    late = make(iat=NOW - 3600, exp=NOW - span)
    begins = make(nbf=NOW + span)
    for claims in (early, late, begins):
        assert await reason_for(claims, policy) is None


@pytest.mark.parametrize("span", [11, 30, 300])
@pytest.mark.parametrize("policy", [TASKS, USERS], ids=["tasks", "users"])
async def test_a_larger_clock_difference_is_refused(span: int, policy: TokenPolicy) -> None:
    make = service_claims if policy is TASKS else user_claims
    early = make(iat=NOW + span, exp=NOW + 3600)
    begins = make(nbf=NOW + span)
    late = make(iat=NOW - 3600, exp=NOW - span)
    assert await reason_for(early, policy) is Reason.NOT_YET_VALID
    early["nbf"] = NOW
    assert await reason_for(early, policy) is Reason.NOT_YET_VALID
    assert await reason_for(begins, policy) is Reason.NOT_YET_VALID
    assert await reason_for(late, policy) is Reason.EXPIRED


async def test_an_hour_and_the_allowance_is_the_longest_lifetime() -> None:
    assert await reason_for(service_claims(exp=NOW + 3610)) is None
    for exp in (NOW + 3611, NOW + 10 * 365 * 86_400, NOW):
        assert await reason_for(service_claims(exp=exp)) is Reason.LIFETIME


@pytest.mark.parametrize("claim", ["iat", "exp", "sub"])
async def test_a_missing_claim_is_refused(claim: str) -> None:
    for make, policy in ((service_claims, TASKS), (user_claims, USERS)):
        assert await reason_for(make(**{claim: ...}), policy) is Reason.BAD_CLAIMS


@pytest.mark.parametrize("claim", ["iat", "exp", "nbf", "auth_time"])
@pytest.mark.parametrize("value", [True, NOW + 0.5, float(NOW), str(NOW), None, [NOW], {}])
async def test_a_time_that_is_no_integer_is_refused(claim: str, value: object) -> None:
    assert await reason_for(user_claims(**{claim: value}), USERS) is Reason.BAD_CLAIMS


@pytest.mark.parametrize("text", ["1e400", "Infinity", "NaN", "9" * 400, "-1", "9" * 5000])
async def test_a_monstrous_number_is_refused(text: str) -> None:
    payload = b'{"iss":"https://accounts.google.com","aud":"%s","sub":"1","iat":%d,"exp":%s}'
    filled = payload % (AUDIENCE.encode(), NOW, text.encode())
    answer = await judge(signed_raw({"alg": "RS256", "kid": KID}, filled))
    assert isinstance(answer, Refused) and answer.status == 401


@pytest.mark.parametrize(
    "audience",
    [
        f"{AUDIENCE}/",
        AUDIENCE.replace("/run", "/reconcile"),
        AUDIENCE.replace("https", "http"),
        AUDIENCE.replace("finalizer.example", "FINALIZER.EXAMPLE"),
        f"{AUDIENCE}?x=1",
        f"{AUDIENCE}#x",
        f" {AUDIENCE}",
        "https://listen.example",
        "",
        ...,
        None,
        [AUDIENCE],
        [AUDIENCE, "https://listen.example"],
        ["https://listen.example"],
        [[AUDIENCE]],
        {"aud": AUDIENCE},
        [],
        True,
    ],
)
async def test_an_audience_that_is_not_the_very_string_is_refused(audience: object) -> None:
    assert await reason_for(service_claims(aud=audience)) is Reason.WRONG_AUDIENCE


@pytest.mark.parametrize("issuer", ["https://accounts.google.com", "accounts.google.com"])
async def test_both_spellings_of_googles_issuer_pass(issuer: str) -> None:
    assert await reason_for(service_claims(iss=issuer)) is None


@pytest.mark.parametrize(
    "issuer",
    [
        "http://accounts.google.com",
        "https://accounts.google.com/",
        "https://ACCOUNTS.google.com",
        "https://accounts.google.com.evil.example",
        "https://securetoken.google.com/canary-project",
        ["https://accounts.google.com"],
        ...,
        None,
        7,
    ],
)
async def test_another_issuer_is_refused(issuer: object) -> None:
    assert await reason_for(service_claims(iss=issuer)) is Reason.WRONG_ISSUER


@pytest.mark.parametrize(
    "email",
    [
        "other@canary-project.iam.gserviceaccount.com",
        "person@example.com",
        EMAIL.upper(),
        f"{EMAIL} ",
        EMAIL.replace("o", "\u043e", 1),
        ...,
        None,
        [EMAIL],
    ],
)
async def test_another_identity_is_forbidden(email: object) -> None:
    answer = await judge(signed(service_claims(email=email)))
    assert answer == Refused(Reason.WRONG_IDENTITY)
    assert answer.status == 403


@pytest.mark.parametrize("verified", [False, ..., None, "true", 1, [True]])
async def test_an_address_that_is_not_literally_verified_is_forbidden(verified: object) -> None:
    answer = await judge(signed(service_claims(email_verified=verified)))
    assert answer == Refused(Reason.UNVERIFIED_EMAIL)
    assert answer.status == 403


@pytest.mark.parametrize(
    "uid", ["", "a/b", ".", "..", "__x__", "a\0b", "é" * 65, "a" * 129, "\ud800", 7, None, ["u"]]
)
async def test_a_uid_that_is_no_identifier_is_refused(uid: object) -> None:
    assert await reason_for(user_claims(sub=uid), USERS) is Reason.BAD_CLAIMS


async def test_a_uid_of_128_bytes_passes() -> None:
    assert await reason_for(user_claims(sub="é" * 64), USERS) is None


async def test_a_sign_in_lies_in_the_past_or_is_not_told() -> None:
    assert await reason_for(user_claims(auth_time=...), USERS) is None
    assert await reason_for(user_claims(auth_time=NOW + 10), USERS) is None
    assert await reason_for(user_claims(auth_time=NOW + 11), USERS) is Reason.NOT_YET_VALID


async def test_a_users_token_is_no_service_token_nor_the_reverse() -> None:
    assert await reason_for(user_claims(), TASKS) is Reason.WRONG_ISSUER
    assert await reason_for(service_claims(), USERS) is Reason.WRONG_ISSUER


async def test_a_key_that_cannot_be_fetched_is_no_fault_of_the_caller() -> None:
    keys = AsyncMock()
    keys.key.return_value = NoKey.UNAVAILABLE
    answer = await TokenVerifier(TASKS, keys).verify(bearer(signed(service_claims())))
    assert answer == Refused(Reason.KEYS_UNAVAILABLE)
    assert answer.status == 503


async def test_the_very_same_token_is_judged_anew_each_time() -> None:
    clock = iter([NOW, NOW, NOW + 3611])
    checks = TokenVerifier(TASKS, known_keys(), now=lambda: next(clock))
    token = bearer(signed(service_claims()))
    answers = [await checks.verify(token) for _ in range(3)]
    assert answers[:2] == [Verified("1234", EMAIL)] * 2
    assert answers[2] == Refused(Reason.EXPIRED)


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ([], Reason.MISSING),
        ([""], Reason.MALFORMED),
        (["Bearer"], Reason.MALFORMED),
        (["Bearer "], Reason.MALFORMED),
        (["Bearer a.b"], Reason.MALFORMED),
        (["Bearer a.b.c.d"], Reason.MALFORMED),
        (["Bearer a.b.c="], Reason.MALFORMED),
        (["Bearer ä.b.c"], Reason.MALFORMED),
        (["Bearer a.b.c\n"], Reason.MALFORMED),
        (["Bearer\ta.b.c"], Reason.MALFORMED),
        (["Basic dXNlcjpwYXNz"], Reason.MALFORMED),
        (["Token a.b.c"], Reason.MALFORMED),
        (["Bearer ya29.access-token"], Reason.MALFORMED),
        (["Bearer " + "a" * (MAX_TOKEN + 1)], Reason.TOO_LARGE),
        (["Bearer " + "a" * 10_000_000], Reason.TOO_LARGE),
    ],
)
async def test_what_is_no_bearer_token_is_refused(headers: list[str], reason: Reason) -> None:
    answer = await verifier().verify(headers)
    assert answer == Refused(reason)
    assert answer.status == 401


async def test_two_headers_are_refused_even_when_both_are_good() -> None:
    good = bearer(signed(service_claims()))
    assert await verifier().verify(good * 2) == Refused(Reason.REPEATED)
    joined = [f"{good[0]}, {good[0]}"]
    assert await verifier().verify(joined) == Refused(Reason.MALFORMED)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer  "])
async def test_the_scheme_is_compared_without_case(scheme: str) -> None:
    answer = await verifier().verify([f"{scheme} {signed(service_claims())}"])
    assert isinstance(answer, Verified)


@pytest.mark.parametrize("scheme", ["Basic", "Token", "Bearer:", "Bearerx", "", "JWT"])
async def test_a_good_token_under_another_scheme_is_refused(scheme: str) -> None:
    answer = await verifier().verify([f"{scheme} {signed(service_claims())}"])
    assert answer == Refused(Reason.MALFORMED)


async def test_a_token_of_8_kib_passes_and_one_byte_more_does_not() -> None:
    def padded(size: int) -> str:
        return signed(service_claims(note="x" * size))

    size = next(n for n in range(5000, 6500) if len(padded(n)) >= MAX_TOKEN - 1)
    assert isinstance(await judge(padded(size - 1)), Verified)
    assert await judge(padded(size + 2)) == Refused(Reason.TOO_LARGE)


@settings(deadline=None)
@given(st.lists(st.text() | st.text().map("Bearer {}".format), max_size=3))
async def test_any_text_as_authorization_is_refused_and_never_raises(headers: list[str]) -> None:
    answer = await verifier().verify(headers)
    assert isinstance(answer, Refused) and answer.status == 401


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


HEADER = st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "jku"]), JSON)


NAMES = ["iss", "aud", "sub", "iat", "exp", "nbf", "email", "email_verified", "auth_time"]


@settings(deadline=None)
@given(HEADER, JSON, st.binary(max_size=300))
async def test_any_unsigned_token_is_refused_and_never_raises(
    header: dict[str, object], payload: object, signature: bytes
) -> None:
    token = raw({"alg": "RS256", "kid": KID, **header}, payload, signature)
    assert isinstance(await judge(token), Refused)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), JSON, min_size=1))
async def test_any_signed_claims_are_judged_without_raising(changes: dict[str, object]) -> None:
    for make, policy in ((service_claims, TASKS), (user_claims, USERS)):
        assert isinstance(await judge(signed(make(**changes)), policy), (Verified, Refused))


async def test_no_answer_shows_anything_of_the_token() -> None:
    good = signed(service_claims())
    answers = [
        await judge(good),
        await judge(signed(user_claims()), USERS),
        await judge(signed(service_claims(email="canary@example.com"))),
        await judge(signed(service_claims(), kid="canary-kid")),
        await verifier().verify(["Bearer canary"]),
    ]
    shown = " ".join(f"{answer!r} {answer}" for answer in answers)
    assert "canary" not in shown and PROJECT not in shown and good not in shown


def test_every_reason_has_one_of_three_statuses() -> None:
    by_status: dict[int, set[Reason]] = {}
    for reason in Reason:
        by_status.setdefault(Refused(reason).status, set()).add(reason)
    assert by_status.pop(403) == {Reason.UNVERIFIED_EMAIL, Reason.WRONG_IDENTITY}
    assert by_status.pop(503) == {Reason.KEYS_UNAVAILABLE}
    assert set(by_status) == {401}
