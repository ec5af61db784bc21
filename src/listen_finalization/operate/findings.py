"""What the doctor says: a closed code, a verdict, what was expected, what was found, what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """Every check, in the order in which they are told."""

    SETTINGS_MODE = "settings_mode"
    SETTINGS_QUEUE = "settings_queue"
    SETTINGS_AUDIENCE = "settings_audience"
    SETTINGS_ACCOUNTS = "settings_accounts"
    SETTINGS_BUDGETS = "settings_budgets"
    SETTINGS_STORE = "settings_store"
    SETTINGS_LOCAL = "settings_local"
    QUEUE_FOUND = "queue_found"
    QUEUE_RUNNING = "queue_running"
    QUEUE_ATTEMPTS = "queue_attempts"
    QUEUE_BACKOFF = "queue_backoff"
    QUEUE_CONCURRENCY = "queue_concurrency"
    QUEUE_RATE = "queue_rate"
    QUEUE_ENQUEUERS = "queue_enqueuers"
    INVOKER_USERS = "invoker_users"
    WORKER_FOUND = "worker_found"
    WORKER_INVOKER_CHECK = "worker_invoker_check"
    WORKER_CALLERS = "worker_callers"
    WORKER_INGRESS = "worker_ingress"
    WORKER_TIMEOUT = "worker_timeout"
    WORKER_ACCOUNT = "worker_account"
    WORKER_URL = "worker_url"
    WORKER_AUDIENCE = "worker_audience"
    HANDLER_WITHOUT_TOKEN = "handler_without_token"  # noqa: S105 -- no password
    HANDLER_JUNK_TOKEN = "handler_junk_token"  # noqa: S105 -- no password
    STORE_READ = "store_read"
    STORE_INDEXES = "store_indexes"
    STORE_FIELDS = "store_fields"
    STORE_RETENTION = "store_retention"
    CLOCK = "clock"
    TASK_KEYS = "task_keys"
    USER_KEYS = "user_keys"
    RUN_LOCK = "run_lock"


class Verdict(StrEnum):
    """How a check ended; unknown: it could not look."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """The end of one check. `remedy` is what to type or do; None where all is well.

    Texts hold names of resources, numbers and the names of settings: of a text setting, never its
    value.
    """

    code: Code
    verdict: Verdict
    expected: str
    found: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What a judge says of facts."""

    verdict: Verdict
    found: str
    remedy: str | None = None


def fine(found: str) -> Said:
    """All is well."""
    return Said(Verdict.OK, found)


def warned(found: str, remedy: str) -> Said:
    """It works, or cannot hurt jobs, and somebody should look."""
    return Said(Verdict.WARNING, found, remedy)


def failed(found: str, remedy: str) -> Said:
    """It does not work, or is not what the files say."""
    return Said(Verdict.FAILURE, found, remedy)
