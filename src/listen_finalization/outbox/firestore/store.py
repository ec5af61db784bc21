"""The production store: three ports over one Firestore database."""

from __future__ import annotations

from collections.abc import Callable

from google.auth.exceptions import GoogleAuthError
from google.cloud.firestore_v1 import AsyncClient

from listen_finalization.domain.policy import Policy
from listen_finalization.errors import CredentialsMissingError
from listen_finalization.outbox.firestore.conversations import FirestoreConversations
from listen_finalization.outbox.firestore.outbox import FirestoreOutbox
from listen_finalization.outbox.firestore.records import FirestoreRecords
from listen_finalization.outbox.firestore.rpc import Rpc


def _unshifted() -> int:
    return 0


def _client(project: str, database: str) -> AsyncClient:
    try:
        return AsyncClient(project=project, database=database)
    except GoogleAuthError as error:
        raise CredentialsMissingError from error


class FirestoreStore:
    """One client of one database, for one event loop.

    Nothing is locked and no transaction is opened: a write names the versions of the documents
    that it was decided on, and one that comes too late is decided again on a fresh read.
    """

    def __init__(
        self,
        project: str,
        policy: Policy,
        *,
        database: str = "(default)",
        client: AsyncClient | None = None,
        shift: Callable[[], int] = _unshifted,
    ) -> None:
        """Make the store; the channel opens at the first call, in the loop that makes it.

        Without `client`, credentials are looked up here, which may block: construct before
        serving. `FIRESTORE_EMULATOR_HOST` is honoured by the client. `shift` is added to every
        time that the server tells, in microseconds: for tests alone. Raises
        `CredentialsMissingError`.
        """
        self._rpc = Rpc(client or _client(project, database), shift)
        self.outbox = FirestoreOutbox(self._rpc, policy)
        self.conversations = FirestoreConversations(self._rpc)
        self.records = FirestoreRecords(self._rpc)

    async def close(self) -> None:
        """Close the channel, whoever made the client. May be called again."""
        await self._rpc.close()
