"""An outbox that fails at one call, in each of the ways in which a store or a process can."""

from __future__ import annotations

from enum import StrEnum

from listen_finalization.domain.commands import Command
from listen_finalization.domain.decision import Answer
from listen_finalization.errors import StoreBrokenError, StoreUnavailableError
from listen_finalization.outbox.sqlite import SqliteOutbox


class Way(StrEnum):
    """What happens at the chosen call. A dead process writes nothing more."""

    REFUSED = "refused"
    ANSWER_LOST = "answer lost after commit"
    DIES_BEFORE = "dies before commit"
    DIES_AFTER = "dies after commit"


class Faulty(SqliteOutbox):
    """Counts writes and fails at number `at`, from 1 on."""

    def __init__(self, outbox: object, at: int, way: Way) -> None:
        assert isinstance(outbox, SqliteOutbox)
        super().__init__(outbox._store)
        self.writes = 0
        self.dead = False
        self._at = at
        self._way = way

    async def apply(self, command: Command) -> Answer:
        self.writes += 1
        if self.dead:
            raise StoreBrokenError
        if self.writes != self._at:
            return await super().apply(command)
        return await self._fail(command)

    async def _fail(self, command: Command) -> Answer:
        self.dead = self._way in (Way.DIES_BEFORE, Way.DIES_AFTER)
        if self._way in (Way.ANSWER_LOST, Way.DIES_AFTER):
            await super().apply(command)
        raise StoreBrokenError if self.dead else StoreUnavailableError
