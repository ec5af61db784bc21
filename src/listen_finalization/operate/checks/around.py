"""Clock, key servers and the run lock's server."""

from __future__ import annotations

from collections.abc import Callable

from listen_finalization.auth.policy import CLOCK_ALLOWANCE
from listen_finalization.operate.checks.check import Case, Check
from listen_finalization.operate.facts import KeyFacts, LockFacts, Look, Seen, ServerTime
from listen_finalization.operate.findings import Code, Said, Verdict, failed, fine, warned
from listen_finalization.settings import BY_FIELD

CLOSE = 1.0
"""Seconds that a clock kept by NTP does not leave; a Date header tells no less."""

_SET_CLOCK = "sudo timedatectl set-ntp true"
_LOCK = BY_FIELD["run_lock_url"].name


def _clock(_: Case, time: ServerTime) -> Said:
    """Tokens are refused from CLOCK_ALLOWANCE on; jobs go by the store's clock alone."""
    ahead = time.offset
    told = f"{abs(ahead):.1f} s {'ahead' if ahead > 0 else 'behind'}"
    if abs(ahead) <= CLOSE:
        return fine("no more")
    return (failed if abs(ahead) > CLOCK_ALLOWANCE else warned)(told, _SET_CLOCK)


def _keys(field: str) -> Callable[[Case, KeyFacts], Said]:
    name = BY_FIELD[field].name

    def judge(_: Case, facts: KeyFacts) -> Said:
        if facts.keys:
            return fine(f"{facts.keys}")
        return failed(facts.ended, f"let this machine reach it, or correct {name}")

    return judge


def _lock(case: Case, facts: LockFacts) -> Said:
    if facts.answered:
        return fine("answered")
    project, location = case.deployed.project, case.deployed.location
    listed = f"gcloud redis instances list --region={location} --project={project}"
    return warned(
        f"{facts.trouble}: runs go on under the lease alone", f"correct {_LOCK}, see {listed}"
    )


def _key_row(code: Code, field: str, sight: Callable[[Seen], Look[KeyFacts]]) -> Check[KeyFacts]:
    return Check(code=code, sight=sight, expected=lambda _: "usable keys", judge=_keys(field))


CLOCK_CHECKS: tuple[Check[ServerTime], ...] = (
    Check(
        code=Code.CLOCK,
        sight=lambda seen: seen.time,
        expected=lambda _: f"this machine's within {CLOSE:g} s",
        judge=_clock,
    ),
)
KEY_CHECKS: tuple[Check[KeyFacts], ...] = (
    _key_row(Code.TASK_KEYS, "google_certs_url", lambda seen: seen.task_keys),
    _key_row(Code.USER_KEYS, "firebase_certs_url", lambda seen: seen.user_keys),
)
LOCK_CHECKS: tuple[Check[LockFacts], ...] = (
    Check(
        code=Code.RUN_LOCK,
        sight=lambda seen: seen.run_lock,
        expected=lambda case: None if case.settings.run_lock_url is None else "an answer",
        judge=_lock,
        extra="redis",
        # The run lock is never the authority: whatever is wrong with it is no failure.
        blind=Verdict.WARNING,
    ),
)
