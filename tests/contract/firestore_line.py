"""The line to the emulator, cut or held where a test says so; the calls themselves stay real."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from listen_finalization.errors import StoreUnavailableError
from listen_finalization.outbox.firestore.rpc import Found

from .firestore_subject import FirestoreSubject

Action = Callable[[], Awaitable[object]]


class Line:
    """Stands before one store's calls and counts them."""

    def __init__(self, subject: FirestoreSubject) -> None:
        rpc = subject.store._rpc
        self.commits: list[list[Any]] = []
        self.reads: list[list[str]] = []
        self._commit, self._read = rpc.commit, rpc.read
        self._lost: list[str] = []
        self._before_commit: list[Action] = []
        self._before_read: dict[int, Action] = {}
        rpc.commit = self.commit  # type: ignore[method-assign]
        rpc.read = self.read  # type: ignore[method-assign]

    def lose(self, what: str) -> None:
        """Lose the next commit: its `request` before, or its `answer` after it is carried out."""
        self._lost.append(what)

    def before_commit(self, action: Action) -> None:
        """Let somebody else act right before the next commit."""
        self._before_commit.append(action)

    def before_read(self, number: int, action: Action) -> None:
        """Let somebody else act right before the read of this number, from 1."""
        self._before_read[number] = action

    async def commit(self, writes: Sequence[Any]) -> None:
        self.commits.append(list(writes))
        lost = self._lost.pop(0) if self._lost else None
        if self._before_commit:
            await self._before_commit.pop(0)()
        if lost != "request":
            await self._commit(writes)
        if lost is not None:
            raise StoreUnavailableError

    async def read(self, names: Sequence[str], mask: Sequence[str] | None = None) -> Found:
        self.reads.append(list(names))
        action = self._before_read.pop(len(self.reads), None)
        if action is not None:
            await action()
        return await self._read(names, mask)
