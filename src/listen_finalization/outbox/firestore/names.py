"""Where every document lies, and how its name is made."""

from __future__ import annotations

from listen_finalization.domain.identity import identifier_fault
from listen_finalization.errors import ValueRefusedError

JOBS = "conversation_finalization_jobs"
RESULTS = "conversation_finalization_results"
RECORDS = "conversation_finalization_records"
ROWS = "conversation_finalization_rows"
USERS = "users"
CONVERSATIONS = "conversations"
MEMORIES = "memories"


def nameable(*identifiers: str) -> bool:
    """Whether a document can have these ids: without, there is no such document.

    Raises `ValueRefusedError` for text that is not Unicode, which no request can carry.
    """
    for identifier in identifiers:
        try:
            identifier.encode()
        except UnicodeEncodeError as error:
            raise ValueRefusedError from error
    return not any(map(identifier_fault, identifiers))


class Names:
    """Full names of the documents of one database."""

    def __init__(self, database: str) -> None:
        self.root = f"{database}/documents"

    def job(self, job_id: str) -> str:
        return f"{self.root}/{JOBS}/{job_id}"

    def results(self, job_id: str) -> str:
        return f"{self.root}/{RESULTS}/{job_id}"

    def user(self, uid: str) -> str:
        return f"{self.root}/{USERS}/{uid}"

    def conversation(self, uid: str, conversation_id: str) -> str:
        return f"{self.user(uid)}/{CONVERSATIONS}/{conversation_id}"

    def memory(self, uid: str, memory_id: str) -> str:
        return f"{self.user(uid)}/{MEMORIES}/{memory_id}"

    def kind(self, kind: str) -> str:
        return f"{self.root}/{RECORDS}/{kind}"

    def record(self, kind: str, key: str) -> str:
        return f"{self.kind(kind)}/{ROWS}/{row_id(key)}"


def row_id(key: str) -> str:
    """Return the document id of a record's key: a `k`, then its UTF-8 as hex digits.

    Any key is then a legal id, and ids sort and share prefixes exactly as their keys do, which no
    escape of the slash alone can keep.
    """
    return f"k{key.encode().hex()}"


def last_part(name: str) -> str:
    """Return the id at the end of a document's name."""
    return name.rpartition("/")[2]
