"""ath-audience: the audience is one exact text, and no start without it skips the check."""

from __future__ import annotations

from typing import Any

import pytest

from listen_finalization.errors import SettingsError
from listen_finalization.settings import Settings

from .cloud import AUDIENCE
from .gate import bearer, passed, refused
from .ground import Ground
from .test_cfg_numbers import MODES

NAME = "LISTEN_FINALIZATION_TASKS_OIDC_AUDIENCE"
CLOUD_MODE = next(env for mode, env in MODES.items() if mode.value == "cloud_tasks")


async def test_the_exact_audience_passes(ground: Ground) -> None:
    await passed(ground, bearer(aud=AUDIENCE))


@pytest.mark.parametrize(
    "audience",
    [
        AUDIENCE + "/",
        AUDIENCE.rpartition("/")[0],
        "https://finalizer.example.com",
        "https://finalizer.example.com/v1/sync-jobs/run",
        AUDIENCE.replace("https", "http"),
        AUDIENCE.replace("finalizer.example", "FINALIZER.EXAMPLE"),
        AUDIENCE + "?x=1",
        AUDIENCE + "#x",
        " " + AUDIENCE,
        "https://other-service.example.com/v1/conversation-finalization-jobs/run",
        "",
        None,
        5,
        [AUDIENCE],
        [AUDIENCE, "https://other.example.com"],
        ["https://other.example.com"],
        {},
        ...,
    ],
)
async def test_almost_the_right_audience_is_refused(audience: Any, ground: Ground) -> None:
    await refused(ground, bearer(aud=audience), 401, "wrong_audience")


@pytest.mark.parametrize("text", ["", " ", None])
def test_without_an_audience_the_service_does_not_start(text: str | None) -> None:
    env = {name: value for name, value in CLOUD_MODE.items() if name != NAME}
    if text is not None:
        env[NAME] = text
    with pytest.raises(SettingsError, match=NAME):
        Settings.from_environment(env)
