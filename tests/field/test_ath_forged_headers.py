"""ath-forged-headers: names and numbers that anybody can write open nothing and count nothing."""

from __future__ import annotations

import pytest

from .cloud import PROJECT, claims, cloud, signed, users
from .gate import TASK_HEADERS, genuine, passed, refused
from .ground import Ground, traces

GOOD = signed(claims())


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Authorization", "")],
        [("Authorization", "Bearer")],
        [("Authorization", "Bearer garbage")],
        [("Authorization", "Bearer a.b.c")],
        [("Authorization", GOOD)],
        [("Authorization", f"Basic {GOOD}")],
        [("Authorization", f"Bearer {GOOD[:-8]}AAAAAAAA")],
        [("Authorization", f"Bearer {GOOD} {GOOD}")],
        [("X-Serverless-Authorization", f"Bearer {GOOD}")],
        [("X-Forwarded-Authorization", f"Bearer {GOOD}")],
        [("Cookie", f"Authorization=Bearer {GOOD}")],
        [("Authorization", f"Bearer {GOOD}"), ("Authorization", f"Bearer {GOOD}")],
        [("Authorization", "Bearer garbage"), ("Authorization", f"Bearer {GOOD}")],
        [("Authorization", f"Bearer {signed(claims(), kid='unknown')}")],
    ],
)
async def test_without_one_good_token_nothing_happens(
    headers: list[tuple[str, str]], ground: Ground
) -> None:
    await refused(ground, headers, 401)


async def test_a_token_in_the_query_is_no_token(ground: Ground) -> None:
    query = f"?access_token={GOOD}&authorization=Bearer%20{GOOD}"
    await refused(ground, {}, 401, "missing", query=query)


async def test_a_customers_own_token_opens_nothing(ground: Ground) -> None:
    token = users().mint_user_token("ada", PROJECT)
    await refused(ground, {"Authorization": f"Bearer {token}"}, 401, "unknown_key")


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer"])
async def test_the_scheme_is_compared_without_case(scheme: str, ground: Ground) -> None:
    """RFC 9110, section 11.1: documented as equal."""
    await passed(ground, {"Authorization": f"{scheme} {GOOD}"})


async def test_a_hundred_forged_deliveries_change_nothing(ground: Ground) -> None:
    async with cloud(ground) as here:
        job = await here.admitted()
        before = await traces(ground)
        for number in range(100):
            kid = f"unknown-{number}"
            forged = {"Authorization": f"Bearer {signed(claims(), kid=kid)}", **TASK_HEADERS}
            assert (await here.request(job, forged)).status_code == 401
        assert await traces(ground) == before
        await genuine(here, job)


@pytest.mark.parametrize("count", ["-1", "4.5", "1e9", "0x4", "99999999999", "", "four", "\u0664"])
async def test_a_retry_count_that_is_no_number_is_not_believed(count: str, ground: Ground) -> None:
    async with cloud(ground) as here:
        job = await here.admitted()
        headers = [
            (b"Authorization", f"Bearer {GOOD}".encode()),
            (b"X-CloudTasks-TaskRetryCount", count.encode()),
        ]
        answer = await here.http.post(
            "/v1/conversation-finalization-jobs/run",
            json={"job_id": job.job_id, "dispatch_generation": 1},
            headers=headers,
        )
        assert answer.json()["status"] == "completed"
        assert (await here.workshop.job(job)).last_task_retry is None
        await here.checks()
