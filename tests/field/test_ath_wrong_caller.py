"""ath-wrong-caller: a good signature of somebody else opens nothing."""

from __future__ import annotations

from typing import Any

import pytest

from listen_finalization.errors import SettingsError
from listen_finalization.settings import Settings

from .cloud import INVOKER, cloud
from .gate import bearer, genuine, passed, refused
from .ground import Ground
from .test_ath_audience import CLOUD_MODE, NAME

ACCOUNT = "LISTEN_FINALIZATION_TASKS_INVOKER_SA"


@pytest.mark.parametrize("issuer", ["https://accounts.google.com", "accounts.google.com"])
async def test_both_spellings_of_googles_issuer_pass(issuer: str, ground: Ground) -> None:
    await passed(ground, bearer(iss=issuer))


@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        ({"email": "other@omi-prod.iam.gserviceaccount.com"}, 403, "wrong_identity"),
        ({"email": "person@gmail.com"}, 403, "wrong_identity"),
        ({"email": INVOKER.upper()}, 403, "wrong_identity"),
        ({"email": INVOKER.replace("o", "\u043e")}, 403, "wrong_identity"),
        ({"email": INVOKER + ".evil.example"}, 403, "wrong_identity"),
        ({"email": " " + INVOKER}, 403, "wrong_identity"),
        ({"email": [INVOKER]}, 403, "wrong_identity"),
        ({"email": ...}, 403, "wrong_identity"),
        ({"email": None}, 403, "wrong_identity"),
        ({"email_verified": False}, 403, "unverified_email"),
        ({"email_verified": "true"}, 403, "unverified_email"),
        ({"email_verified": 1}, 403, "unverified_email"),
        ({"email_verified": ...}, 403, "unverified_email"),
        ({"iss": "https://accounts.google.com/"}, 401, "wrong_issuer"),
        ({"iss": "http://accounts.google.com"}, 401, "wrong_issuer"),
        ({"iss": "https://securetoken.google.com/omi-prod"}, 401, "wrong_issuer"),
        ({"iss": "https://services.listen-finalization.invalid"}, 401, "wrong_issuer"),
        ({"iss": ...}, 401, "wrong_issuer"),
    ],
)
async def test_a_genuine_token_of_another_identity_is_refused(
    changes: dict[str, Any], status: int, reason: str, ground: Ground
) -> None:
    await refused(ground, bearer(**changes), status, reason)


@pytest.mark.parametrize("token", ["ya29.a0AfH6SMBx-access-token", "x" * 9_000])
async def test_an_access_token_is_no_id_token(token: str, ground: Ground) -> None:
    await refused(ground, {"Authorization": f"Bearer {token}"}, 401)


async def test_a_wrong_caller_is_refused_before_its_body_is_read(ground: Ground) -> None:
    async with cloud(ground) as here:
        job = await here.admitted()
        read: list[int] = []

        async def body() -> Any:
            read.append(1)
            yield b"{}"

        answer = await here.http.post(
            "/v1/conversation-finalization-jobs/run",
            content=body(),
            headers=bearer(email="other@omi-prod.iam.gserviceaccount.com"),
        )
        assert (answer.status_code, read) == (403, [])
        await genuine(here, job)


@pytest.mark.parametrize("missing", [NAME, ACCOUNT])
@pytest.mark.parametrize("text", ["", " ", None])
@pytest.mark.parametrize("mode", ["cloud_tasks", "inline"])
def test_half_an_identity_does_not_start(missing: str, text: str | None, mode: str) -> None:
    env = {name: value for name, value in CLOUD_MODE.items() if name != missing}
    env["LISTEN_FINALIZATION_DISPATCH_MODE"] = mode
    if text is not None:
        env[missing] = text
    with pytest.raises(SettingsError, match=missing):
        Settings.from_environment(env)
