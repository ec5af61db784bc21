"""ath-clock-skew: ten seconds of difference pass in both directions, more does not."""

from __future__ import annotations

import time
from typing import Any

import pytest

from .gate import bearer, passed, refused
from .ground import Ground

# Time passes between minting and checking, on a busy machine seconds; to the second the bounds
# are held by tests/unit/auth/test_token_policy.py.
SMALL = (0, 1, 5, 9)
LARGE = (40, 300)


def now() -> int:
    return int(time.time())


@pytest.mark.parametrize("ahead", SMALL)
@pytest.mark.parametrize("nbf", [False, True])
async def test_a_token_from_a_clock_a_little_ahead_passes(
    ahead: int, nbf: bool, ground: Ground
) -> None:
    extra: dict[str, Any] = {"nbf": now() + ahead} if nbf else {}
    await passed(ground, bearer(iat=now() + ahead, **extra))


@pytest.mark.parametrize("ahead", LARGE)
@pytest.mark.parametrize("claim", ["iat", "nbf"])
async def test_a_token_from_further_ahead_is_refused(
    ahead: int, claim: str, ground: Ground
) -> None:
    await refused(ground, bearer(**{claim: now() + ahead}), 401, "not_yet_valid")


@pytest.mark.parametrize("behind", [0, 1])
async def test_a_token_that_ended_a_moment_ago_passes(behind: int, ground: Ground) -> None:
    await passed(ground, bearer(iat=now() - 600, exp=now() - behind))


@pytest.mark.parametrize("behind", [11, *LARGE])
async def test_a_token_that_ended_longer_ago_is_refused(behind: int, ground: Ground) -> None:
    await refused(ground, bearer(iat=now() - 600, exp=now() - behind), 401, "expired")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iat": ...}, "bad_claims"),
        ({"exp": ...}, "bad_claims"),
        ({"iat": ..., "exp": ...}, "bad_claims"),
        ({"exp": "4102444800"}, "bad_claims"),
        ({"iat": True}, "bad_claims"),
        ({"nbf": "now"}, "bad_claims"),
        ({"exp": 4_102_444_800}, "lifetime"),
        ({"exp": 10**30}, "lifetime"),
    ],
)
async def test_times_that_are_missing_odd_or_years_away_are_refused(
    changes: dict[str, Any], reason: str, ground: Ground
) -> None:
    await refused(ground, bearer(**changes), 401, reason)
