"""One row of the table of checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from listen_finalization.operate import remedies
from listen_finalization.operate.deployed import Deployed
from listen_finalization.operate.facts import Look, Missing, Seen, Unseen
from listen_finalization.operate.findings import Code, Finding, Said, Verdict
from listen_finalization.settings import Settings

F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Case:
    """What a live project is compared with: the deploy files and this environment's settings."""

    deployed: Deployed
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Generic[F]):
    """What is looked at, what is expected of it, and who judges.

    `expected` returns None where the check does not apply. `missing` says what it is that the
    thing is not there; None: another check says that, and this one has nothing to judge. `role`,
    `api` and `extra` are what somebody needs who could not look; `blind` is the verdict then.
    """

    code: Code
    sight: Callable[[Seen], Look[F]]
    expected: Callable[[Case], str | None]
    judge: Callable[[Case, F], Said]
    missing: Callable[[Case], Said] | None = None
    role: str = ""
    api: str = ""
    extra: str = "google"
    blind: Verdict = Verdict.UNKNOWN

    def find(self, case: Case, seen: Seen) -> Finding | None:
        """Return how the check ended; None where it does not apply."""
        expected = self.expected(case)
        if expected is None:
            return None
        said = self._said(case, self.sight(seen))
        if said is None:
            return None
        return Finding(self.code, said.verdict, expected, said.found, said.remedy)

    def _said(self, case: Case, look: Look[F]) -> Said | None:
        if isinstance(look, Missing):
            return None if self.missing is None else self.missing(case)
        if isinstance(look, Unseen):
            remedy = remedies.remedy_of(
                look.why, case.deployed, role=self.role, api=self.api, extra=self.extra
            )
            return Said(self.blind, remedies.reason(look.why), remedy)
        return self.judge(case, look)
