"""Which processes of a data directory live, told by locks that the kernel frees at death."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import weakref
from pathlib import Path

PROCESSES = "processes"
LEADER = "dispatcher.lock"
"""Where the locks stand in a data directory: one for each process, and the leader's."""

_ID_DIGITS = 16


def half_of_claim_id() -> str:
    """Return 64 random bits as hex digits: a process's id, or the half that its claims add."""
    return secrets.token_hex(_ID_DIGITS // 2)


class HeldLock:
    """An exclusive lock on an open file, this process's alone.

    A lock belongs to the open file, which a fork shares: the child closes its copy at once, or
    the lock would outlive its owner. Giving up unlocks before it closes, for the same reason.
    """

    def __init__(self, descriptor: int) -> None:
        """Take charge of an open file before it is locked, so that no fork can come between."""
        self._descriptor: int | None = descriptor
        self._pid = os.getpid()
        _HELD.add(self)

    def taken(self, kind: int = fcntl.LOCK_EX) -> bool:
        """Lock the file, unless another holds it; a shared try is in no other try's way."""
        if self._descriptor is None:
            return False
        try:
            fcntl.flock(self._descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    @property
    def ours(self) -> bool:
        return self._descriptor is not None and self._pid == os.getpid()

    def give_up(self) -> None:
        """Unlock and close. May be called again; does nothing in a child."""
        if self.ours and self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
        self._descriptor = None

    def leave_to_parent(self) -> None:
        """Close the copy that a fork made, which leaves the parent's lock as it is."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
        self._descriptor = None


_HELD: weakref.WeakSet[HeldLock] = weakref.WeakSet()


def _leave_all() -> None:
    for lock in tuple(_HELD):
        lock.leave_to_parent()


os.register_at_fork(after_in_child=_leave_all)


class ProcessRegistry:
    """Holds this process's own lock, whose random id is the first half of its claim ids.

    A process whose lock file is free, or gone, is dead: the file is there before the first claim.
    After a fork the child gets an id and a lock of its own at its first use.
    """

    def __init__(self, directory: Path) -> None:
        """Register in `directory`, which is created (0700) where it is missing."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self._known_dead: set[str] = set()
        self._register()

    def _register(self) -> None:
        self._pid = os.getpid()
        while True:
            self._id = half_of_claim_id()
            self._file = self._path(self._id)
            descriptor = os.open(self._file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            self._lock = HeldLock(descriptor)
            if self._lock.taken() and self._file.exists():
                return
            self._lock.give_up()

    def _path(self, process_id: str) -> Path:
        return self._directory / f"{process_id}.lock"

    def new_claim_id(self) -> str:
        """Mint a claim id: this process's id, then 64 random bits, as 32 hex digits."""
        self._own()
        return self._id + half_of_claim_id()

    def dead(self, claim_id: str) -> bool:
        """Whether the process that minted the claim id is provably dead."""
        self._own()
        process_id = claim_id[:_ID_DIGITS]
        if process_id == self._id or len(claim_id) != 2 * _ID_DIGITS:
            return False
        if process_id in self._known_dead:
            return True
        if not lock_is_free(self._path(process_id)):
            return False
        self._known_dead.add(process_id)
        return True

    def _own(self) -> None:
        """Register anew after a fork: the id was the parent's."""
        if self._pid != os.getpid():
            self._register()

    def prune(self) -> int:
        """Delete the lock files of dead processes; return how many there were."""
        found = [path for path in self._directory.glob("*.lock") if path != self._file]
        dead = [path for path in found if lock_is_free(path)]
        for path in dead:
            path.unlink(missing_ok=True)
        return len(dead)

    def close(self) -> None:
        """Leave: from now on this process counts as dead."""
        if self._pid == os.getpid():
            self._file.unlink(missing_ok=True)
            self._lock.give_up()


def lock_is_free(path: Path) -> bool:
    """Whether no process holds the lock, or its file is gone; the try is given back at once."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return True
    lock = HeldLock(descriptor)
    try:
        return lock.taken(fcntl.LOCK_SH)
    finally:
        lock.give_up()


class Election:
    """One process of a data directory leads: the holder of a lock that the kernel frees."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: HeldLock | None = None

    @property
    def leads(self) -> bool:
        return self._lock is not None and self._lock.ours

    def campaign(self) -> bool:
        """Take the lead where nobody has it; True while this process leads."""
        if self.leads:
            return True
        descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
        lock = HeldLock(descriptor)
        if not lock.taken():
            lock.give_up()
            return False
        self._lock = lock
        return True

    def resign(self) -> None:
        """Give the lead up. May be called again."""
        if self._lock is not None:
            self._lock.give_up()
        self._lock = None
