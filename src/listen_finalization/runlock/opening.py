"""The run lock of a deployment: opened where its server is named, announced where it is not."""

from __future__ import annotations

from listen_finalization.errors import SettingsError
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.ports import Liveness, Outbox
from listen_finalization.runlock.lock import LeaseRunLock

SETTING = "LISTEN_FINALIZATION_RUN_LOCK_URL"


def open_run_lock(
    url: str | None, outbox: Outbox, liveness: Liveness, signals: Signals, *, ttl: float
) -> LeaseRunLock | None:
    """Return the run lock of the server at `url`, not connected yet; None, told of, without one.

    `ttl` is in seconds. Raises `SettingsError` where the `redis` extra is not installed.
    """
    if url is None:
        signals.emit(Event.RUN_LOCK_UNSET)
        return None
    try:
        from listen_finalization.runlock.redis import RedisLocks
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"{SETTING} needs the redis extra: pip install 'listen-finalization[redis]'"
        ) from error
    return LeaseRunLock(RedisLocks(url, signals, ttl=ttl), outbox, liveness, signals)
