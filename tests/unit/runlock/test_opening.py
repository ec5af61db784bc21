"""Opening the run lock from the settings."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from listen_finalization.errors import SettingsError
from listen_finalization.observe.signals import Event
from listen_finalization.runlock.lock import LeaseRunLock
from listen_finalization.runlock.opening import open_run_lock
from listen_finalization.testing.workshop import Workshop

URL = "rediss://worker:canary-61aa@redis.example.com:6380/1"


async def test_without_a_server_there_is_no_lock_and_this_is_told(tmp_path: Path) -> None:
    async with Workshop(tmp_path) as here:
        assert open_run_lock(None, here.outbox, here.liveness, here.signals, ttl=1800) is None
        assert here.signals.counts == {(Event.RUN_LOCK_UNSET, ""): 1}


async def test_a_lock_is_opened_without_a_word_to_its_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Workshop(tmp_path) as here:
        lock = open_run_lock(URL, here.outbox, here.liveness, here.signals, ttl=1800)
        assert isinstance(lock, LeaseRunLock)
        assert here.signals.counts == {}
        await lock.close()
    assert "canary" not in caplog.text


@pytest.mark.parametrize("module", ["redis", "redis.asyncio"])
async def test_without_the_library_the_extra_is_named_and_the_url_is_not(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "listen_finalization.runlock.redis", raising=False)
    async with Workshop(tmp_path) as here:
        with pytest.raises(SettingsError) as caught:
            open_run_lock(URL, here.outbox, here.liveness, here.signals, ttl=1800)
    assert str(caught.value) == (
        "LISTEN_FINALIZATION_RUN_LOCK_URL needs the redis extra: "
        "pip install 'listen-finalization[redis]'"
    )
