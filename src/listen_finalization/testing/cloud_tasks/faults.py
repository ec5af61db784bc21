"""Fault switches of the server: what goes wrong, how often, and for how long.

They are set at run time, from Python or over the control address. None of them holds content.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum

from listen_finalization.errors import ListenFinalizationError
from listen_finalization.testing.cloud_tasks.refusals import Code

MAX_LATE = 30 * 86_400
"""Seconds by which a delivery may be late."""


METHODS = (
    *("ListQueues", "GetQueue", "CreateQueue", "UpdateQueue", "DeleteQueue", "PurgeQueue"),
    *("PauseQueue", "ResumeQueue", "ListTasks", "GetTask", "CreateTask", "DeleteTask", "RunTask"),
)
"""The calls that can be refused."""


class FaultKind(StrEnum):
    """What can go wrong. The first four happen to a call, the others to a delivery."""

    REFUSE = "refuse"
    """The call is answered with `code` and changes nothing; `methods` says which calls."""

    FORGET = "forget"
    """CreateTask answers OK, the name is taken, and the task is lost."""

    UNCERTAIN = "uncertain"
    """CreateTask keeps the task and answers with `code`, by default DEADLINE_EXCEEDED."""

    SILENT = "silent"
    """CreateTask keeps the task and never answers: the caller's own deadline ends the call."""

    TWICE = "twice"
    """An attempt is sent twice at once; the answer to the first counts."""

    LATE = "late"
    """A new task is dispatched `seconds` after its time."""

    UNORDERED = "unordered"
    """Of the tasks that are ready, the one that waited shortest goes first."""


_CODES = {FaultKind.REFUSE: Code.UNAVAILABLE, FaultKind.UNCERTAIN: Code.DEADLINE_EXCEEDED}


class FaultError(ListenFinalizationError):
    """A fault switch cannot be set so."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One switch. It is hit `count` times, or until it is cleared where that is None.

    `share` is the part of the occasions that are hit, evenly spread: 0.25 is every fourth.
    Raises `FaultError` for a number out of bounds, or what its kind does not take.
    """

    kind: FaultKind
    count: int | None = None
    share: float = 1.0
    code: Code | None = None
    seconds: float | None = None
    methods: tuple[str, ...] = ("CreateTask",)

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 1:
            raise FaultError("count must be 1 or more")
        if not 0 < self.share <= 1:
            raise FaultError("share must be above 0 and at most 1")
        if self.code is not None and self.kind not in _CODES:
            raise FaultError("code is for refuse and uncertain only")
        if (self.seconds is not None) is not (self.kind is FaultKind.LATE):
            raise FaultError("seconds are for late, which needs them")
        if not 0 <= (self.seconds or 0) <= MAX_LATE:
            raise FaultError(f"seconds must be 0 to {MAX_LATE}")
        if not self.methods or not set(self.methods) <= set(METHODS):
            raise FaultError(f"methods must be of {', '.join(METHODS)}")
        if self.methods != ("CreateTask",) and self.kind is not FaultKind.REFUSE:
            raise FaultError("methods are for refuse only")

    @property
    def status(self) -> Code:
        """The code that a call is answered with."""
        return self.code or _CODES.get(self.kind, Code.UNKNOWN)


class Faults:
    """The switches that are on, one of each kind; `hits` counts what they did."""

    def __init__(self) -> None:
        self.hits: Counter[FaultKind] = Counter()
        self._on: dict[FaultKind, Fault] = {}
        self._owed: dict[FaultKind, float] = {}

    def set(self, fault: Fault) -> None:
        """Switch a fault on, in place of one of the same kind."""
        self._on[fault.kind] = fault
        self._owed[fault.kind] = 0.0

    def clear(self, kind: FaultKind | None = None) -> None:
        """Switch one kind off, or all."""
        for one in FaultKind if kind is None else (kind,):
            self._on.pop(one, None)

    def active(self) -> tuple[Fault, ...]:
        """Return what is on, with the counts that are left."""
        return tuple(self._on[kind] for kind in FaultKind if kind in self._on)

    def hit(self, kind: FaultKind, method: str = "CreateTask") -> Fault | None:
        """Say whether this occasion is hit, and count it."""
        fault = self._on.get(kind)
        if fault is None or method not in fault.methods:
            return None
        self._owed[kind] += fault.share
        # Shares such as a tenth are not exact in binary: ten of them must make one.
        if self._owed[kind] < 1 - 1e-9:
            return None
        self._owed[kind] -= 1
        self.hits[kind] += 1
        if fault.count == 1:
            self.clear(kind)
        elif fault.count is not None:
            self._on[kind] = replace(fault, count=fault.count - 1)
        return fault
