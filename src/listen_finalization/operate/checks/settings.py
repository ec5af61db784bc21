"""The settings of this environment against what the deploy files give the worker."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from listen_finalization.operate import remedies
from listen_finalization.operate.checks.check import Case, Check
from listen_finalization.operate.deployed import Deployed, handler_pattern
from listen_finalization.operate.findings import Code, Said, failed, fine, warned
from listen_finalization.settings import BY_FIELD, RUN_PATH, UNSET, Setting, Settings

Row = Check[None]

_GROUPS: Mapping[Code, tuple[str, ...]] = {
    Code.SETTINGS_MODE: ("dispatch_mode",),
    Code.SETTINGS_QUEUE: ("tasks_project", "tasks_location", "tasks_queue"),
    Code.SETTINGS_ACCOUNTS: ("tasks_invoker_sa", "scheduler_sa"),
    Code.SETTINGS_BUDGETS: (
        "tasks_max_attempts",
        "tasks_dispatch_deadline_seconds",
        "run_timeout_seconds",
        "reconcile_stale_seconds",
        "reconcile_interval_seconds",
        "run_lock_ttl_seconds",
    ),
    Code.SETTINGS_STORE: ("store_project", "firestore_database", "firebase_project"),
}
_ALONE = frozenset({"scheduler_sa", "firebase_project"})
"""Settings that one role has and another need not have: compared where they are set."""

_TOKEN_FIELDS = ("tasks_handler_url", "tasks_oidc_audience")


def given(deployed: Deployed) -> Mapping[str, str]:
    """Return the texts that the deploy files give the worker, by field of the settings.

    Without a worker they are those that every role has. What only a project's number tells is not
    among them, unless the file writes it out for the worker.
    """
    budgets = deployed.budgets
    texts = {
        "dispatch_mode": deployed.mode,
        "store_project": deployed.project,
        "firestore_database": deployed.database,
        "firebase_project": deployed.users_project,
        "run_timeout_seconds": str(budgets.get("run_timeout_seconds", "")),
        "reconcile_stale_seconds": str(budgets.get("reconcile_stale_seconds", "")),
        "reconcile_interval_seconds": str(budgets.get("reconcile_interval_seconds", "")),
    }
    if deployed.queue is not None:
        texts |= {
            "tasks_project": deployed.project,
            "tasks_location": deployed.location,
            "tasks_queue": deployed.queue.name,
            "tasks_invoker_sa": deployed.email("invoker"),
            "scheduler_sa": deployed.email("scheduler"),
            "tasks_max_attempts": str(deployed.queue.max_attempts),
            "tasks_dispatch_deadline_seconds": str(budgets.get("dispatch_deadline_seconds", "")),
        }
    if deployed.run_lock:
        texts["run_lock_ttl_seconds"] = str(budgets.get("run_lock_ttl_seconds", ""))
    own = deployed.worker.environment if deployed.worker is not None else {}
    return texts | {field: own[one.name] for field, one in BY_FIELD.items() if one.name in own}


def _declared(field: str) -> Setting:
    return BY_FIELD["firestore_project" if field == "store_project" else field]


def _group(code: Code, fields: tuple[str, ...]) -> Row:
    def expected(case: Case) -> str | None:
        texts = given(case.deployed)
        told = (f"{_declared(field).name}={texts[field]}" for field in fields if field in texts)
        return ", ".join(told) or None

    def judge(case: Case, _: None) -> Said:
        texts = given(case.deployed)
        wrong = [
            f"{_declared(field).name} is {_shown(field, case.settings)}"
            for field in fields
            if field in texts and _differs(field, texts[field], case.settings)
        ]
        return _settled(wrong, case)

    return _row(code, expected, judge)


def _settled(wrong: list[str], case: Case) -> Said:
    if not wrong:
        return fine("the same")
    return failed(", ".join(wrong), remedies.exports(case.deployed))


def _differs(field: str, text: str, settings: Settings) -> bool:
    value = getattr(settings, field)
    if value is None and field in _ALONE:
        return False
    return value is None or value != _declared(field).read(text)


def _shown(field: str, settings: Settings) -> str:
    """Return a number or choice as it is; of a text, which may be anything, only that it is."""
    value, one = getattr(settings, field), _declared(field)
    if value is None:
        return UNSET
    return "another" if one.secret else one.show(value)


def _audience_expected(case: Case) -> str | None:
    if case.deployed.queue is None:
        return None
    texts = given(case.deployed)
    wanted = [texts.get(field, handler_pattern(case.deployed)) for field in _TOKEN_FIELDS]
    return " and ".join(dict.fromkeys(wanted))


def _audience(case: Case, _: None) -> Said:
    texts = given(case.deployed)
    wrong = [
        f"{BY_FIELD[field].name} is {_shown(field, case.settings)}"
        for field in _TOKEN_FIELDS
        if not _fits(getattr(case.settings, field), texts.get(field), case.deployed)
    ]
    free = not wrong and texts.keys().isdisjoint(_TOKEN_FIELDS)
    if free and case.settings.tasks_handler_url != case.settings.tasks_oidc_audience:
        wrong = [f"{' and '.join(BY_FIELD[field].name for field in _TOKEN_FIELDS)} differ"]
    return _settled(wrong, case)


def _fits(value: str | None, text: str | None, deployed: Deployed) -> bool:
    if value is None or text is not None:
        return value is not None and value == text
    name = deployed.worker.name if deployed.worker is not None else ""
    host = rf"{re.escape(name)}-[0-9]+\.{re.escape(deployed.location)}\.run\.app"
    return re.fullmatch(rf"https://{host}{RUN_PATH}", value) is not None


def _local(case: Case, _: None) -> Said:
    name = BY_FIELD["tasks_emulator"].name
    if case.settings.tasks_emulator is None:
        return fine("none")
    return warned(f"{name} is set: the queue is that of a server here", f"unset {name}")


def _row(
    code: Code, expected: Callable[[Case], str | None], judge: Callable[[Case, None], Said]
) -> Row:
    return Check(code=code, sight=lambda _: None, expected=expected, judge=judge)


SETTINGS_CHECKS: tuple[Row, ...] = (
    *(_group(code, fields) for code, fields in _GROUPS.items()),
    _row(Code.SETTINGS_AUDIENCE, _audience_expected, _audience),
    _row(Code.SETTINGS_LOCAL, lambda _: "no server of this machine", _local),
)
