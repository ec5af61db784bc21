"""Who may enqueue, act as the invoker and call the worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from listen_finalization.operate import remedies
from listen_finalization.operate.checks.check import Case, Check
from listen_finalization.operate.facts import Rights
from listen_finalization.operate.findings import Code, Said, failed, fine, warned

Row = Check[Rights]

ENQUEUER = "roles/cloudtasks.enqueuer"
ACTS_AS = "roles/iam.serviceAccountUser"
INVOKER = "roles/run.invoker"
_REVIEWER = "roles/iam.securityReviewer"


def _expected(role: str, members: Callable[[Case], Iterable[str]]) -> Callable[[Case], str | None]:
    def expected(case: Case) -> str | None:
        if case.deployed.queue is None:
            return None
        return f"{role}: {', '.join(sorted(set(members(case))))}"

    return expected


def _granted(
    role: str,
    members: Callable[[Case], Iterable[str]],
    lacking: Callable[[str, str], Said] = failed,
) -> Callable[[Case, Rights], Said]:
    """Return the judge of a role: on the resource it is well, on the whole project it is wide."""

    def judge(case: Case, rights: Rights) -> Said:
        apart = sorted(one for one in set(members(case)) if rights.own.lacks(role, one))
        if not apart:
            return fine("all of them")
        nowhere = [
            one for one in apart if rights.project is None or rights.project.lacks(role, one)
        ]
        remedy = remedies.apply(case.deployed)
        if nowhere:
            return lacking(f"not: {', '.join(nowhere)}", remedy)
        return warned(f"on the whole project only: {', '.join(apart)}", remedy)

    return judge


def _enqueuers(case: Case) -> Iterable[str]:
    return case.deployed.enqueuers


def _callers(case: Case) -> Iterable[str]:
    return case.deployed.callers


def _acting(case: Case) -> str | None:
    """Tell who must act as the invoker; one that enqueues under its own name, as itself."""
    told = _expected(ACTS_AS, _enqueuers)(case)
    return told and f"{told} on {case.deployed.email('invoker')}"


RIGHTS_CHECKS: tuple[Row, ...] = (
    Check(
        code=Code.QUEUE_ENQUEUERS,
        sight=lambda seen: seen.rights(seen.queue_policy),
        expected=_expected(ENQUEUER, _enqueuers),
        judge=_granted(ENQUEUER, _enqueuers),
        role=_REVIEWER,
        api="cloudtasks.googleapis.com",
    ),
    Check(
        code=Code.INVOKER_USERS,
        sight=lambda seen: seen.rights(seen.invoker_policy),
        expected=_acting,
        judge=_granted(ACTS_AS, _enqueuers),
        missing=lambda case: failed("no such account", remedies.apply(case.deployed)),
        role=_REVIEWER,
        api="iam.googleapis.com",
    ),
    Check(
        code=Code.WORKER_CALLERS,
        sight=lambda seen: seen.rights(seen.worker_policy),
        expected=_expected(INVOKER, _callers),
        # The worker's own verifier is the gate; a gateway in front may ask for the role.
        judge=_granted(INVOKER, _callers, lacking=warned),
        role=_REVIEWER,
        api="run.googleapis.com",
    ),
)
