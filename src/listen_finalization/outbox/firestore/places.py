"""Which conversation a job is about, which never changes, and which job a conversation named."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

Place = tuple[str, str]
"""A uid and a conversation id."""

MOST = 10_000
"""Jobs that are remembered, a few hundred bytes each; a forgotten one costs one more call."""

K = TypeVar("K")
V = TypeVar("V")


class Places:
    """Remembers what was seen last, so that one call reads both documents.

    The conversation of a job is a fact, the job of a conversation a guess: what is read tells.
    """

    def __init__(self) -> None:
        self._places: OrderedDict[str, Place] = OrderedDict()
        self._jobs: OrderedDict[Place, str] = OrderedDict()

    def of(self, job_id: str) -> Place | None:
        return self._places.get(job_id)

    def guess(self, place: Place) -> str | None:
        """Return the job that the conversation named when it was seen last."""
        return self._jobs.get(place)

    def learn(self, job_id: str, place: Place) -> None:
        _remember(self._places, job_id, place)

    def learn_named(self, place: Place, job_id: str) -> None:
        _remember(self._jobs, place, job_id)


def _remember(held: OrderedDict[K, V], key: K, value: V) -> None:
    held[key] = value
    held.move_to_end(key)
    if len(held) > MOST:
        held.popitem(last=False)
