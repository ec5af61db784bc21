"""The two ways to a stack, one in this process and one over HTTP, behind one small port."""

from __future__ import annotations

from typing import Protocol

from listen_finalization.admission import Admission
from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.faults import CommandError
from listen_finalization.cli.transcripts import Transcript
from listen_finalization.domain.codes import RefusalCode
from listen_finalization.domain.commands import Admit
from listen_finalization.domain.decision import Refused
from listen_finalization.errors import ConversationClosedError
from listen_finalization.http.answers import finalization_answer, record_answer
from listen_finalization.http.customer import REFUSALS
from listen_finalization.http.finalization import Finalizations
from listen_finalization.http.models import FinalizationAnswer, RecordAnswer
from listen_finalization.http.problems import PROBLEMS, Kind
from listen_finalization.stack import Stack

LOCAL_WAIT = 0.05
LONGEST_LOCAL_WAIT = 0.5


class Gateway(Protocol):
    """What finalizing a transcript needs of a stack; all methods raise faults of ours only."""

    async def store(self, transcript: Transcript) -> None:
        """Store the segments, in a new conversation where there is none."""
        ...

    async def admit(self, conversation_id: str, *, force: bool) -> None:
        """Ask for the finalization; durable on return. Raises where it is refused."""
        ...

    async def standing(self, conversation_id: str) -> FinalizationAnswer:
        """Tell where the finalization stands."""
        ...

    async def record(self, conversation_id: str) -> RecordAnswer:
        """Return the conversation with its finished record."""
        ...

    def wait(self, answer: FinalizationAnswer, looked: int) -> float:
        """Return the seconds until the next look, the `looked`-th."""
        ...


class LocalGateway:
    """The stack of this process, for one user; no request is limited and no token needed."""

    def __init__(self, stack: Stack, uid: str) -> None:
        self._conversations = stack.store.conversations
        self._admission: Admission = stack.admission
        self._finalizations = Finalizations(stack.store.outbox)
        self._max_attempts = stack.settings.tasks_max_attempts
        self._uid = uid

    async def store(self, transcript: Transcript) -> None:
        key, words = transcript.conversation_id, transcript.segments
        try:
            await self._conversations.append(self._uid, key, words, language=transcript.language)
        except ConversationClosedError:
            raise refused(Kind.CONVERSATION_CLOSED) from None

    async def admit(self, conversation_id: str, *, force: bool) -> None:
        answer = await self._admission.admit(Admit(self._uid, conversation_id, force_process=force))
        if isinstance(answer, Refused) and answer.code is not RefusalCode.CONVERSATION_SETTLED:
            raise refused(REFUSALS.get(answer.code, Kind.INTERNAL_ERROR))

    async def standing(self, conversation_id: str) -> FinalizationAnswer:
        found = await self._finalizations.read(self._uid, conversation_id)
        if isinstance(found, Kind):
            raise refused(found)
        return finalization_answer(found, max_attempts=self._max_attempts)

    async def record(self, conversation_id: str) -> RecordAnswer:
        found = await self._conversations.find(self._uid, conversation_id)
        if found is None:
            raise refused(Kind.CONVERSATION_NOT_FOUND)
        return record_answer(found)

    def wait(self, answer: FinalizationAnswer, looked: int) -> float:
        del answer
        return min(LOCAL_WAIT * 1.3 ** min(looked, 20), LONGEST_LOCAL_WAIT)


def refused(kind: Kind) -> CommandError:
    """Return the fault for a problem of the API's closed list."""
    code, remedy = _REFUSED.get(kind, (ExitCode.REFUSED, "see what the conversation holds"))
    word = kind.replace("-", "_")
    return CommandError(PROBLEMS[kind].when, code=code, remedy=remedy, word=word)


# fmt: off
_REFUSED: dict[Kind, tuple[ExitCode, str]] = {
    Kind.UNAUTHENTICATED: (ExitCode.REFUSED,
        "take a fresh token: `listen-finalization token --data DIR`, DIR being that of the stack"),
    Kind.FORBIDDEN: (ExitCode.REFUSED, "use a user token of this stack"),
    Kind.NOT_FOUND: (ExitCode.REFUSED, "check --url: it must be the base of a running `up`"),
    Kind.METHOD_NOT_ALLOWED: (ExitCode.REFUSED, "check --url: it must be the base of a stack"),
    Kind.CONVERSATION_EMPTY: (ExitCode.USAGE, "give a transcript with words in it"),
    Kind.CONVERSATION_CLOSED: (ExitCode.REFUSED,
        "give the conversation another id; --force-process keeps short ones from being discarded"),
    Kind.CONVERSATION_DISCARDED: (ExitCode.REFUSED, "give the conversation another id"),
    Kind.BODY_TOO_LARGE: (ExitCode.USAGE, "split the conversation into several files"),
    Kind.INVALID_REQUEST: (ExitCode.USAGE, "correct the file in the fields that are named"),
    Kind.RATE_LIMITED: (ExitCode.UNAVAILABLE, "try again later, with fewer files at once"),
    Kind.INTERNAL_ERROR: (ExitCode.UNAVAILABLE, "look at the log of the stack"),
    Kind.IDENTITY_UNAVAILABLE: (ExitCode.UNAVAILABLE, "try again in a moment"),
    Kind.NOT_CONFIGURED: (ExitCode.UNAVAILABLE, "configure a durable mode at the stack"),
    Kind.STORE_BUSY: (ExitCode.UNAVAILABLE, "try again in a moment"),
    Kind.STORE_UNAVAILABLE: (ExitCode.UNAVAILABLE, "look at the stack's disk and log"),
}
# fmt: on
