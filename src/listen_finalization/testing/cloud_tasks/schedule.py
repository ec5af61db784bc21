"""The order in which the tasks of one queue become ready."""

from __future__ import annotations

import heapq
import itertools

from listen_finalization.domain.job import Instant

_Entry = tuple[Instant, int, str]


class Schedule:
    """Names by the time from which they may be dispatched; each is in it once at most."""

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        self._entries: dict[str, _Entry] = {}
        self._numbers = itertools.count()

    def put(self, name: str, ready: Instant) -> None:
        """Schedule a name, or schedule it anew."""
        entry = (ready, next(self._numbers), name)
        self._entries[name] = entry
        heapq.heappush(self._heap, entry)

    def drop(self, name: str) -> None:
        """Take a name out, if it is there."""
        self._entries.pop(name, None)

    def first(self) -> Instant | None:
        """Return when the next name becomes ready."""
        while self._heap and self._entries.get(self._heap[0][2]) is not self._heap[0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now: Instant, *, newest: bool = False) -> str | None:
        """Take out the ready name that has waited longest, or shortest with `newest`."""
        ready = self.first()
        if ready is None or ready > now:
            return None
        due = (one for one in self._entries.values() if one[0] <= now)
        _, _, name = max(due) if newest else self._heap[0]
        self.drop(name)
        return name
