"""Resource names of Cloud Tasks: their alphabets and lengths (reference, Queue and Task)."""

from __future__ import annotations

import re

from listen_finalization.testing.cloud_tasks.refusals import invalid

_PROJECT = r"projects/[A-Za-z0-9:.-]{1,100}"
_LOCATION = rf"{_PROJECT}/locations/[A-Za-z0-9-]{{1,63}}"
_QUEUE = rf"{_LOCATION}/queues/[A-Za-z0-9-]{{1,100}}"
_TASK = rf"{_QUEUE}/tasks/[A-Za-z0-9_-]{{1,500}}"


def location(name: str) -> str:
    """Return `name` when it names a location. Raises `CallRefusedError`."""
    return _checked(_LOCATION, name, "the parent is no location name")


def queue(name: str) -> str:
    """Return `name` when it names a queue: 1 to 100 letters, digits or hyphens."""
    return _checked(_QUEUE, name, "the queue name is malformed")


def task(name: str) -> str:
    """Return `name` when it names a task: 1 to 500 letters, digits, hyphens or underscores."""
    return _checked(_TASK, name, "the task name is malformed")


def parent_of(name: str) -> str:
    """Return the queue of a task, or the location of a queue."""
    return name.rsplit("/", 2)[0]


def short(name: str) -> str:
    """Return the last part of a name."""
    return name.rpartition("/")[2]


def _checked(pattern: str, name: str, fault: str) -> str:
    if not re.fullmatch(pattern, name, re.ASCII):
        raise invalid(fault)
    return name
