"""Names derived from what they name: the job id and the task name."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

MAX_ID_BYTES = 128
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,127}")
_RESERVED = re.compile(r"__.*__", re.DOTALL)


def identifier_fault(value: str) -> str | None:
    """Say why `value` cannot name a document of its own, or None when it can.

    The rules are those of a Firestore document id, tightened: 1 to 128 bytes of UTF-8, no slash,
    not `.` or `..`, not `__x__`, no control character. The answer never holds the value.
    """
    if _PLAIN.fullmatch(value):
        return None
    if not value:
        return "is empty"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "is not valid Unicode"
    if size > MAX_ID_BYTES:
        return f"is longer than {MAX_ID_BYTES} bytes"
    if value in {".", ".."} or "/" in value or "\\" in value:
        return "could leave its document path"
    if _RESERVED.fullmatch(value):
        return "is reserved"
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in value):
        return "has a control character"
    return None


@lru_cache(maxsize=1_024)
def job_id(uid: str, conversation_id: str, revision: int) -> str:
    """Return the id of the only job of this revision: a UUIDv8 (RFC 9562) from SHA-256.

    Each part is prefixed with its length, so that no two triples hash the same bytes; the id
    reveals none of them.
    """
    parts = (uid.encode(), conversation_id.encode(), str(revision).encode())
    told = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    name = hashlib.sha256(told).hexdigest()
    variant = "89ab"[int(name[16], 16) & 0x3]
    return f"{name[:8]}-{name[8:12]}-8{name[13:16]}-{variant}{name[17:20]}-{name[20:32]}"


def task_name(job: str, generation: int) -> str:
    """Return the queue's name of one hand-over: at most 47 of `[0-9a-f-]`, hash first.

    A job id is evenly spread, which Cloud Tasks asks of names ("Task names", CreateTask
    reference); the generation makes each hand-over a name of its own.
    """
    return f"{job}-{generation}"
