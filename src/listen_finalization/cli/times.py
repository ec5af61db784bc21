"""Instants as an operator reads them: with zone, and how long ago or ahead."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from listen_finalization.domain.job import SECOND, Instant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def written(instant: Instant | None) -> str | None:
    """Write an instant as RFC 3339 in UTC, in milliseconds; None for one out of a calendar."""
    if instant is None:
        return None
    try:
        moment = _EPOCH + timedelta(microseconds=instant)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def aged(instant: Instant, now: Instant) -> str:
    """Write how far an instant lies from `now`: `3 min ago`, `in 2 h`."""
    away = duration(abs(instant - now) / SECOND)
    return f"in {away}" if instant > now else f"{away} ago"


def duration(seconds: float) -> str:
    """Write a length of time in its largest unit, rounded down; under a minute in seconds."""
    for size, name in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {name}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{int(seconds)} s"


def moment(instant: Instant | None, now: Instant) -> str | None:
    """Write an instant with its age."""
    if instant is None:
        return None
    return f"{written(instant)} ({aged(instant, now)})"
