"""Processes on many machines: each names its claims, and none can be proven dead."""

from __future__ import annotations

from listen_finalization.dispatch.processes import half_of_claim_id


class RemoteProcesses:
    """A `ports.Liveness` without a shared kernel: only the end of a lease frees a job."""

    def __init__(self) -> None:
        self._id = half_of_claim_id()

    def dead(self, claim_id: str) -> bool:
        """Say no: nothing here can know of another machine's process."""
        del claim_id
        return False

    def new_claim_id(self) -> str:
        """Mint a claim id: this process's id, then 64 random bits, as 32 hex digits."""
        return self._id + half_of_claim_id()
