"""The settings: every one declared once, as a field of `Settings`, and checked at construction.

Numbers in the environment are whole numbers in plain ASCII digits, without sign, leading zero,
decimals, exponent, unit or blanks around them, and bounded on both sides: no value means never, at
once or unlimited. A blank value is refused rather than taken for an unset one.
"""
# ruff: noqa: RUF009 -- `setting` builds a `dataclasses.field` and nothing else

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import InitVar, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple

from listen_finalization.domain.budgets import (
    MAX_DISPATCH_DEADLINE,
    RENEWALS_PER_LEASE,
    Amount,
    Budgets,
    DispatchMode,
    Inequality,
    inequalities,
)
from listen_finalization.domain.job import seconds
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import SettingsError

RUN_PATH = "/v1/conversation-finalization-jobs/run"
MASKED = "set, not shown"
UNSET = "unset"
DAY = 86_400

_OURS = ("LISTEN_FINALIZATION_", "HTTP_LISTEN_FINALIZATION_")
# What Kubernetes puts into every pod beside a Service whose name starts like ours.
_SERVICE_LINK = re.compile(
    r"(\w+?)_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?"
    r"|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)",
    re.ASCII,
)
_PRINTABLE_NAME = re.compile(r"[A-Za-z0-9_]{1,100}")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{0,8}}"
_PORT = r"(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?"
_DOTTED = r"[A-Za-z_]\w{0,99}(?:\.[A-Za-z_]\w{0,99}){0,9}"


class Kind(StrEnum):
    """How the text of a setting is read."""

    COUNT = "count"
    SECONDS = "seconds"
    DAYS = "days"
    FLAG = "flag"
    MODE = "mode"
    ACCOUNT = "account"
    AUDIENCE = "audience"
    HANDLER_URL = "handler URL"
    KEYS_URL = "keys URL"
    NAME = "name"
    PATH = "path"
    PROCESSOR = "processor"
    QUEUE = "queue"


_NUMBERS = {Kind.COUNT: "", Kind.SECONDS: " of seconds", Kind.DAYS: " of days"}
_CHOICES: Mapping[Kind, Mapping[str, Any]] = {
    Kind.FLAG: {"true": True, "false": False},
    Kind.MODE: {mode.value: mode for mode in DispatchMode},
}
_TEXTS: Mapping[Kind, tuple[str, str]] = {
    Kind.ACCOUNT: (
        rf"[a-z0-9](?:[a-z0-9._-]{{0,61}}[a-z0-9])?@{_LABEL}(?:\.{_LABEL}){{1,8}}",
        "the address of a service account, in lower case",
    ),
    Kind.AUDIENCE: (r"[\x21-\x7e]{1,2048}", "at most 2048 visible ASCII characters"),
    Kind.HANDLER_URL: (
        rf"https://{_HOST}{_PORT}{RUN_PATH}",
        f"https://, a host in lower case and exactly {RUN_PATH}: no user, slash or query after it",
    ),
    Kind.KEYS_URL: (
        rf"(?:https://{_HOST}|http://(?:localhost|127\.0\.0\.1|\[::1\])){_PORT}"
        r"/[\x21\x22\x24-\x5b\x5d-\x7e]{0,2000}",
        "an https URL (http to a loopback host) without user and fragment, the host in lower case",
    ),
    Kind.NAME: (
        r"[a-z0-9](?:[a-z0-9.:-]{0,61}[a-z0-9])?",
        "at most 63 lower-case letters, digits, dots, colons and hyphens",
    ),
    Kind.PATH: (r"(?![~\s])[^\x00-\x1f\x7f]{1,4096}(?<!\s)", "a path; ~ is not expanded"),
    Kind.PROCESSOR: (
        rf"[A-Za-z0-9_][A-Za-z0-9_.-]{{0,99}}|{_DOTTED}:{_DOTTED}",
        "extractive, the name of an entry point, or package.module:Class",
    ),
    Kind.QUEUE: (
        r"(?!(?i:sync-jobs|audio-merge)\Z)[A-Za-z0-9-]{1,100}",
        "the id of a queue of its own (letters, digits, hyphens), not sync-jobs or audio-merge",
    ),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One declaration: what docs, `check` and error messages say of a setting comes from here.

    `default` and `embedded` (the default of that mode, where it differs) are texts as the
    environment would hold them; None: unset. `low` and `high` bound numbers, ends included.
    A value that is `secret` is never shown; all texts that are not from a closed list are, since
    nobody can say what was pasted into them.
    """

    name: str
    kind: Kind
    about: str
    default: str | None = None
    embedded: str | None = None
    low: int = 1
    high: int = 0
    secret: bool = False

    @property
    def expects(self) -> str:
        """What a value must be, for people."""
        if self.kind in _NUMBERS:
            return (
                f"a whole number{_NUMBERS[self.kind]} from {self.low} to {self.high}, digits only"
            )
        if self.kind in _CHOICES:
            return " or ".join(_CHOICES[self.kind])
        return _TEXTS[self.kind][1]

    def default_in(self, mode: DispatchMode) -> str | None:
        """Return the text that an unset setting stands for."""
        embedded = self.embedded if mode is DispatchMode.EMBEDDED else None
        return self.default if embedded is None else embedded

    def read(self, text: str) -> Any:
        """Return the value that the text spells, or None where it is refused."""
        if self.kind in _NUMBERS:
            value = int(text) if _NUMBER.fullmatch(text) else 0
            return value if self.low <= value <= self.high else None
        if self.kind in _CHOICES:
            return _CHOICES[self.kind].get(text)
        if not re.fullmatch(_TEXTS[self.kind][0], text, re.ASCII):
            return None
        return Path(text) if self.kind is Kind.PATH else text

    def admits(self, value: object) -> bool:
        """Say whether code may construct with the value: as read, but seconds may be short.

        Seconds are any number above zero and up to `high`.
        """
        if value is None:
            return self.default is None
        if self.kind is Kind.SECONDS and isinstance(value, int | float):
            return type(value) is not bool and 0 < value <= self.high
        known = self.read(self.show(value))
        return type(known) is type(value) and known == value

    def show(self, value: object) -> str:
        """Return the value as the environment would hold it; the caller masks secrets."""
        if value is None:
            return UNSET
        if isinstance(value, bool):
            return str(value).lower()
        return f"{value:.15g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a configuration is refused: the settings that it is about, and a text without values."""

    names: tuple[str, ...]
    text: str = dataclasses.field(repr=False)


class Described(NamedTuple):
    """One line of `check`: the value is as the environment would hold it, or masked."""

    name: str
    value: str
    source: Literal["default", "environment"]


def setting(name: str, kind: Kind, **declared: Any) -> Any:
    """Return the dataclass field of a setting; outside the embedded mode it has its default."""
    made = Setting(name, kind, **declared)
    default = None if made.default is None else made.read(made.default)
    return dataclasses.field(default=default, repr=not made.secret, metadata={"setting": made})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One deployment's configuration, checked as a whole: whoever holds one can run with it.

    `from_environment` is for services and the CLI. The constructor is for code and tests: its
    defaults are those outside the embedded mode, its seconds may have decimals and be shorter than
    the environment may ask for; the inequalities hold for both. `given` are the names that the
    environment gave; `faults` are those already found, to be reported together with the rest.
    Raises `SettingsError` that names everything that is wrong, and no value but numbers that were
    read and stand in a broken inequality.
    """

    dispatch_mode: DispatchMode = setting(
        "LISTEN_FINALIZATION_DISPATCH_MODE",
        Kind.MODE,
        about="who runs the jobs",
        default="inline",
    )
    tasks_queue: str | None = setting(
        "LISTEN_FINALIZATION_TASKS_QUEUE",
        Kind.QUEUE,
        about="the dedicated Cloud Tasks queue",
        secret=True,
    )
    tasks_handler_url: str | None = setting(
        "LISTEN_FINALIZATION_TASKS_HANDLER_URL",
        Kind.HANDLER_URL,
        about="where Cloud Tasks delivers",
        secret=True,
    )
    tasks_oidc_audience: str | None = setting(
        "LISTEN_FINALIZATION_TASKS_OIDC_AUDIENCE",
        Kind.AUDIENCE,
        about="the audience of task tokens, compared exactly",
        secret=True,
    )
    tasks_invoker_sa: str | None = setting(
        "LISTEN_FINALIZATION_TASKS_INVOKER_SA",
        Kind.ACCOUNT,
        about="the only service account that may run tasks",
        secret=True,
    )
    tasks_max_attempts: int = setting(
        "LISTEN_FINALIZATION_TASKS_MAX_ATTEMPTS",
        Kind.COUNT,
        about="claims of one budget; the same number as the queue's",
        default="5",
        high=100,
    )
    tasks_dispatch_deadline_seconds: float = setting(
        "LISTEN_FINALIZATION_TASKS_DISPATCH_DEADLINE_SECONDS",
        Kind.SECONDS,
        about="how long the queue waits for the answer to a delivery",
        default="1800",
        low=15,
        high=MAX_DISPATCH_DEADLINE,
    )
    run_timeout_seconds: float = setting(
        "HTTP_LISTEN_FINALIZATION_RUN_TIMEOUT",
        Kind.SECONDS,
        about="how long one run may take",
        default="1500",
        high=MAX_DISPATCH_DEADLINE,
    )
    reconcile_stale_seconds: float = setting(
        "LISTEN_FINALIZATION_RECONCILE_STALE_SECONDS",
        Kind.SECONDS,
        about="how long a hand-over may take before the reconciler makes another",
        default="300",
        high=14_400,
    )
    reconcile_interval_seconds: float = setting(
        "LISTEN_FINALIZATION_RECONCILE_INTERVAL_SECONDS",
        Kind.SECONDS,
        about="time between two rounds of the reconciler",
        default="300",
        low=10,
        high=3_600,
    )
    lease_seconds: float = setting(
        "LISTEN_FINALIZATION_LEASE_SECONDS",
        Kind.SECONDS,
        about="how long a silent worker keeps its job; renewed at every third of it",
        default="60",
        embedded="15",
        low=3,
        high=MAX_DISPATCH_DEADLINE,
    )
    slots: int = setting(
        "LISTEN_FINALIZATION_SLOTS",
        Kind.COUNT,
        about="runs at once in one process",
        default="4",
        high=64,
    )
    session_limit_seconds: float = setting(
        "LISTEN_FINALIZATION_SESSION_LIMIT_SECONDS",
        Kind.SECONDS,
        about="how long a job waits for the session that presented keys",
        default="120",
        high=3_600,
    )
    backoff_seconds: float = setting(
        "LISTEN_FINALIZATION_BACKOFF_SECONDS",
        Kind.SECONDS,
        about="wait after the first failed attempt, doubled by each further one",
        default="10",
        embedded="1",
        high=3_600,
    )
    backoff_limit_seconds: float = setting(
        "LISTEN_FINALIZATION_BACKOFF_LIMIT_SECONDS",
        Kind.SECONDS,
        about="the longest wait between two attempts",
        default="600",
        embedded="60",
        high=14_400,
    )
    retention_days: int = setting(
        "LISTEN_FINALIZATION_RETENTION_DAYS",
        Kind.DAYS,
        about="how long completed jobs are kept",
        default="30",
        high=3_650,
    )
    byok_abandon_days: int | None = setting(
        "LISTEN_FINALIZATION_BYOK_ABANDON_DAYS",
        Kind.DAYS,
        about="age at which a job that waits for keys is given up; unset: it waits",
        high=3_650,
    )
    shutdown_grace_seconds: float = setting(
        "LISTEN_FINALIZATION_SHUTDOWN_GRACE_SECONDS",
        Kind.SECONDS,
        about="how long runs may go on at shutdown before they release their lease",
        default="8",
        high=600,
    )
    processor: str = setting(
        "LISTEN_FINALIZATION_PROCESSOR",
        Kind.PROCESSOR,
        about="what makes the record of a conversation",
        default="extractive",
        secret=True,
    )
    delivery_timeout_seconds: float = setting(
        "LISTEN_FINALIZATION_DELIVERY_TIMEOUT_SECONDS",
        Kind.SECONDS,
        about="how long one delivery to a destination may take",
        default="10",
        high=300,
    )
    admit_loopback_destinations: bool = setting(
        "LISTEN_FINALIZATION_ADMIT_LOOPBACK_DESTINATIONS",
        Kind.FLAG,
        about="whether deliveries may go to this machine; embedded mode only",
        default="false",
    )
    data_dir: Path | None = setting(
        "LISTEN_FINALIZATION_DATA_DIR",
        Kind.PATH,
        about="the directory of database, locks and keys",
        embedded="./data",
        secret=True,
    )
    tasks_project: str | None = setting(
        "SYNC_TASKS_PROJECT",
        Kind.NAME,
        about="the Google Cloud project of the queue",
        secret=True,
    )
    tasks_location: str | None = setting(
        "SYNC_TASKS_LOCATION",
        Kind.NAME,
        about="the region of the queue",
        secret=True,
    )
    firebase_project: str | None = setting(
        "LISTEN_FINALIZATION_FIREBASE_PROJECT",
        Kind.NAME,
        about="the project whose users are our customers",
        embedded="local",
        secret=True,
    )
    google_certs_url: str = setting(
        "LISTEN_FINALIZATION_GOOGLE_CERTS_URL",
        Kind.KEYS_URL,
        about="where the keys of task tokens are published",
        default="https://www.googleapis.com/oauth2/v3/certs",
        secret=True,
    )
    firebase_certs_url: str = setting(
        "LISTEN_FINALIZATION_FIREBASE_CERTS_URL",
        Kind.KEYS_URL,
        about="where the keys of customer tokens are published",
        default="https://www.googleapis.com/service_accounts/v1/jwk/"
        "securetoken@system.gserviceaccount.com",
        secret=True,
    )
    given: frozenset[str] = dataclasses.field(default=frozenset(), repr=False, compare=False)
    faults: InitVar[tuple[Fault, ...]] = ()
