"""The port of a conversation processor: the one place where a user's own code plugs in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from listen_finalization.domain.content import Content, Enrichment, Memory


@dataclass(frozen=True, slots=True)
class Request:
    """What one step is given.

    `timeout` is the number of seconds that the step may still take. `keys` maps a provider to the
    user's own key and is None for a job that runs on the platform's keys. `job_id` stands for the
    conversation's revision and is the same in every attempt; `claim` numbers the job's claims.
    """

    content: Content = field(repr=False)
    force_process: bool
    timeout: float
    keys: Mapping[str, str] | None = field(default=None, repr=False)
    job_id: str = ""
    claim: int = 0


class Processor(Protocol):
    """Turns a conversation into its record. Methods are called off the event loop, in a thread.

    Raise `StepFailedError`, `EnvironmentFaultError` or `KeysRejectedError` of
    `listen_finalization.errors`; any other exception counts as a failed attempt with the code
    `processor_error`, and its text is kept nowhere.
    """

    def enrich(self, request: Request) -> Enrichment | None:
        """Return the record; None means there is nothing to tell (an empty record)."""
        ...

    def memories(self, request: Request, enrichment: Enrichment) -> Sequence[Memory]:
        """Return at most 50 lasting facts, each with its source segment ids."""
        ...
