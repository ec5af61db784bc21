"""The doctor's judgement: facts in, findings out, by one table of checks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from listen_finalization.operate.checks.around import CLOCK_CHECKS, KEY_CHECKS, LOCK_CHECKS
from listen_finalization.operate.checks.check import Case, Check
from listen_finalization.operate.checks.queue import QUEUE_CHECKS
from listen_finalization.operate.checks.rights import RIGHTS_CHECKS
from listen_finalization.operate.checks.settings import SETTINGS_CHECKS
from listen_finalization.operate.checks.store import FIELD_CHECKS, INDEX_CHECKS, STORE_CHECKS
from listen_finalization.operate.checks.worker import HANDLER_CHECKS, SERVICE_CHECKS
from listen_finalization.operate.facts import Seen
from listen_finalization.operate.findings import Code, Finding, Verdict

_ROWS: tuple[Check[Any], ...] = (
    *SETTINGS_CHECKS,
    *QUEUE_CHECKS,
    *RIGHTS_CHECKS,
    *SERVICE_CHECKS,
    *HANDLER_CHECKS,
    *STORE_CHECKS,
    *INDEX_CHECKS,
    *FIELD_CHECKS,
    *CLOCK_CHECKS,
    *KEY_CHECKS,
    *LOCK_CHECKS,
)
_BY_CODE = {check.code: check for check in _ROWS}

CHECKS: Mapping[Code, Check[Any]] = {code: _BY_CODE[code] for code in Code}
"""Every check, in the order in which they are told."""


def findings(case: Case, seen: Seen) -> tuple[Finding, ...]:
    """Return how every check that applies ended."""
    ended = (check.find(case, seen) for check in CHECKS.values())
    return tuple(finding for finding in ended if finding is not None)


def all_blind(found: tuple[Finding, ...]) -> bool:
    """Whether nothing that asks for a role could be looked at: nothing is known of the project."""
    return all(one.verdict is Verdict.UNKNOWN for one in found if CHECKS[one.code].role)
