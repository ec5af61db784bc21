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
from pathlib import Path
from typing import Any

from listen_finalization.declaration import (
    MASKED,
    RECONCILE_PATH,
    RUN_PATH,
    UNSET,
    Described,
    Fault,
    Setting,
    Source,
    setting,
)
from listen_finalization.domain import budgets
from listen_finalization.domain.budgets import DispatchMode
from listen_finalization.domain.job import seconds
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import SettingsError

_HEADLINE = "settings that cannot work:"
__all__ = [
    "BY_FIELD",
    "MASKED",
    "RECONCILE_PATH",
    "RUN_PATH",
    "SETTINGS",
    "UNSET",
    "Described",
    "Fault",
    "Setting",
    "Settings",
]
CLOUD_TASKS, EMBEDDED = DispatchMode.CLOUD_TASKS, DispatchMode.EMBEDDED

_OURS = ("LISTEN_FINALIZATION_", "HTTP_LISTEN_FINALIZATION_")
# What Kubernetes puts into every pod beside a Service whose name starts like ours.
_SERVICE_LINK = re.compile(
    r"(\w+?)_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?"
    r"|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)",
    re.ASCII,
)


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

    # fmt: off
    dispatch_mode: DispatchMode = setting("LISTEN_FINALIZATION_DISPATCH_MODE", "mode",
        default="inline", about="who runs the jobs")
    tasks_queue: str | None = setting("LISTEN_FINALIZATION_TASKS_QUEUE", "queue",
        needed=CLOUD_TASKS, about="the dedicated Cloud Tasks queue")
    tasks_handler_url: str | None = setting("LISTEN_FINALIZATION_TASKS_HANDLER_URL", "handler_url",
        needed=CLOUD_TASKS, about="where Cloud Tasks delivers")
    tasks_oidc_audience: str | None = setting("LISTEN_FINALIZATION_TASKS_OIDC_AUDIENCE", "audience",
        needed=CLOUD_TASKS, about="the audience of task tokens, compared exactly")
    tasks_invoker_sa: str | None = setting("LISTEN_FINALIZATION_TASKS_INVOKER_SA", "account",
        needed=CLOUD_TASKS, about="the only service account that may run tasks")
    tasks_max_attempts: int = setting("LISTEN_FINALIZATION_TASKS_MAX_ATTEMPTS", "count",
        default="5", high=100, about="claims of one budget; the same number as the queue has")
    tasks_dispatch_deadline_seconds: float = setting(
        "LISTEN_FINALIZATION_TASKS_DISPATCH_DEADLINE_SECONDS", "seconds", default="1800", low=15,
        high=budgets.MAX_DISPATCH_DEADLINE, about="how long the queue waits for an answer")
    run_timeout_seconds: float = setting("HTTP_LISTEN_FINALIZATION_RUN_TIMEOUT", "seconds",
        default="1500", high=budgets.MAX_DISPATCH_DEADLINE, about="how long one run may take")
    reconcile_stale_seconds: float = setting("LISTEN_FINALIZATION_RECONCILE_STALE_SECONDS",
        "seconds", default="300", high=14_400,
        about="how long a hand-over may take before the reconciler makes another")
    reconcile_interval_seconds: float = setting("LISTEN_FINALIZATION_RECONCILE_INTERVAL_SECONDS",
        "seconds", default="300", low=10, high=3_600,
        about="time between two rounds of the reconciler")
    lease_seconds: float = setting("LISTEN_FINALIZATION_LEASE_SECONDS", "seconds", default="60",
        embedded="15", low=3, high=budgets.MAX_DISPATCH_DEADLINE,
        about="how long a silent worker keeps its job; renewed at every third of it")
    slots: int = setting("LISTEN_FINALIZATION_SLOTS", "count", default="4", high=64,
        about="runs at once in one process")
    session_limit_seconds: float = setting("LISTEN_FINALIZATION_SESSION_LIMIT_SECONDS", "seconds",
        default="120", high=3_600, about="how long a job waits for the session that presented keys")
    backoff_seconds: float = setting("LISTEN_FINALIZATION_BACKOFF_SECONDS", "seconds", default="10",
        embedded="1", high=3_600,
        about="wait after the first failed attempt, doubled by each further one")
    backoff_limit_seconds: float = setting("LISTEN_FINALIZATION_BACKOFF_LIMIT_SECONDS", "seconds",
        default="600", embedded="60", high=14_400, about="the longest wait between two attempts")
    finalize_per_minute: int = setting("LISTEN_FINALIZATION_FINALIZE_PER_MINUTE", "count",
        default="60", embedded="6000", high=60_000,
        about="finalize requests that one user may make in a minute, in each process")
    shutdown_grace_seconds: float = setting("LISTEN_FINALIZATION_SHUTDOWN_GRACE_SECONDS", "seconds",
        default="8", high=600,
        about="how long runs may go on at shutdown before they release their lease")
    processor: str = setting("LISTEN_FINALIZATION_PROCESSOR", "processor", default="extractive",
        about="what makes the record of a conversation")
    delivery_timeout_seconds: float = setting("LISTEN_FINALIZATION_DELIVERY_TIMEOUT_SECONDS",
        "seconds", default="10", high=60, about="how long one delivery to a destination may take")
    admit_loopback_destinations: bool = setting("LISTEN_FINALIZATION_ADMIT_LOOPBACK_DESTINATIONS",
        "flag", default="false",
        about="whether deliveries may go to this machine; embedded mode only")
    data_dir: Path | None = setting("LISTEN_FINALIZATION_DATA_DIR", "path", embedded="./data",
        needed=EMBEDDED, about="the directory of database, locks and keys")
    tasks_project: str | None = setting("SYNC_TASKS_PROJECT", "name", needed=CLOUD_TASKS,
        about="the Google Cloud project of the queue")
    tasks_location: str | None = setting("SYNC_TASKS_LOCATION", "name", needed=CLOUD_TASKS,
        about="the region of the queue")
    firebase_project: str | None = setting("LISTEN_FINALIZATION_FIREBASE_PROJECT", "name",
        embedded="local", needed=EMBEDDED, about="the project whose users are our customers")
    google_certs_url: str = setting("LISTEN_FINALIZATION_GOOGLE_CERTS_URL", "keys_url",
        default="https://www.googleapis.com/oauth2/v3/certs",
        about="where the keys of task tokens are published")
    firebase_certs_url: str = setting("LISTEN_FINALIZATION_FIREBASE_CERTS_URL", "keys_url",
        default="https://www.googleapis.com/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com",
        about="where the keys of customer tokens are published")
    scheduler_sa: str | None = setting("LISTEN_FINALIZATION_SCHEDULER_SA", "account",
        about="the only service account that may start a round of the reconciler by POST")
    firestore_project: str | None = setting("LISTEN_FINALIZATION_FIRESTORE_PROJECT", "name",
        about="the Google Cloud project of the database; unset: that of SYNC_TASKS_PROJECT")
    firestore_database: str = setting("LISTEN_FINALIZATION_FIRESTORE_DATABASE", "database",
        default="(default)", about="the Firestore database of jobs and conversations")
    firestore_emulator: str | None = setting("FIRESTORE_EMULATOR_HOST", "loopback",
        about="the Firestore emulator of this machine instead of Google's database")
    tasks_emulator: str | None = setting("CLOUD_TASKS_EMULATOR_HOST", "loopback",
        about="a Cloud Tasks server of this machine instead of Google's, for development")
    run_lock_url: str | None = setting("LISTEN_FINALIZATION_RUN_LOCK_URL", "redis_url",
        about="the Redis server of the run lock; unset: runs have the lease alone")
    run_lock_ttl_seconds: float = setting("LISTEN_FINALIZATION_RUN_LOCK_TTL_SECONDS", "seconds",
        default="1800", low=2, high=86_400, about="how long a run lock stands by itself")
    # fmt: on
    given: frozenset[str] = dataclasses.field(default=frozenset(), repr=False, compare=False)
    faults: InitVar[tuple[Fault, ...]] = ()

    def __post_init__(self, faults: tuple[Fault, ...]) -> None:
        misfits = tuple(self._misfits())
        named = {name for fault in faults for name in fault.names}
        found = [*faults, *misfits]
        if not misfits:
            found += [one for one in self._contradictions() if named.isdisjoint(one.names)]
        if found:
            raise SettingsError("\n- ".join([_HEADLINE, *(fault.text for fault in found)]))

    @classmethod
    def from_environment(
        cls, env: Mapping[str, str], *, defaults: Mapping[str, str] | None = None
    ) -> Settings:
        """Read all settings; `defaults` stand in for names that `env` does not have.

        Names that start like ours and are none of ours are refused, except those that Kubernetes
        derives from its Services. Raises `SettingsError`, naming everything that is wrong at once.
        """
        texts = {**(defaults or {}), **env}
        mode = _mode(texts)
        read = {field: _read(one, texts.get(one.name), mode) for field, one in BY_FIELD.items()}
        values: dict[str, Any] = {
            field: BY_FIELD[field].standing(mode) if isinstance(found, Fault) else found
            for field, found in read.items()
        }
        faults = (*_unknown(texts), *(one for one in read.values() if isinstance(one, Fault)))
        given = frozenset(env).intersection(one.name for one in SETTINGS)
        return cls(**values, given=given, faults=faults)

    @property
    def renewal_seconds(self) -> float:
        """How often a run renews its lease."""
        return self.lease_seconds / budgets.RENEWALS_PER_LEASE

    @property
    def worker_identity_configured(self) -> bool:
        """Whether the run route can check Google's task tokens; it then answers in every mode."""
        return self.tasks_oidc_audience is not None and self.tasks_invoker_sa is not None

    @property
    def store_project(self) -> str | None:
        """The project of the Firestore database."""
        return self.firestore_project or self.tasks_project

    @property
    def queue_path(self) -> str:
        """The full name of the queue; all its parts are there in the `cloud_tasks` mode."""
        place = f"projects/{self.tasks_project}/locations/{self.tasks_location}"
        return f"{place}/queues/{self.tasks_queue}"

    @property
    def durable_mode(self) -> bool:
        """Whether the exact-id route may admit; `cloud_tasks` is never configured in part."""
        return self.dispatch_mode is not DispatchMode.INLINE

    def policy(self) -> Policy:
        """Return the numbers that decisions need; in embedded mode the outbox is the queue."""
        queued = self.dispatch_mode is not EMBEDDED
        wait = seconds(self.reconcile_stale_seconds) if queued else 0
        return Policy(
            lease=seconds(self.lease_seconds),
            max_attempts=self.tasks_max_attempts,
            handover=wait,
            retry_floor=wait,
            backoff=seconds(self.backoff_seconds),
            backoff_limit=seconds(self.backoff_limit_seconds),
            session_limit=seconds(self.session_limit_seconds),
        )

    def inequalities(self) -> tuple[budgets.Inequality, ...]:
        """Return what `check` prints of the budgets; all of them hold."""
        present = budgets.Budgets(
            BY_FIELD["dispatch_mode"].name,
            self.dispatch_mode,
            lease=self._amount("lease_seconds"),
            run_timeout=self._amount("run_timeout_seconds"),
            dispatch_deadline=self._amount("tasks_dispatch_deadline_seconds"),
            stale=self._amount("reconcile_stale_seconds"),
            backoff=self._amount("backoff_seconds"),
            backoff_limit=self._amount("backoff_limit_seconds"),
            delivery_timeout=self._amount("delivery_timeout_seconds"),
            run_lock=self._amount("run_lock_ttl_seconds") if self.run_lock_url else None,
        )
        return budgets.inequalities(present)

    def described(self) -> list[Described]:
        """Return every setting in the order of its declaration; secrets are masked.

        Where a secret setting has its documented default, that is shown.
        """
        return [self._described(field, one) for field, one in BY_FIELD.items()]

    def _described(self, field: str, one: Setting) -> Described:
        value = getattr(self, field)
        masked = one.secret and value is not None and value != one.standing(self.dispatch_mode)
        source: Source = "environment" if one.name in self.given else "default"
        return Described(one.name, MASKED if masked else one.show(value), source)

    def _amount(self, field: str) -> budgets.Amount:
        return budgets.Amount(BY_FIELD[field].name, getattr(self, field))

    def _misfits(self) -> Iterator[Fault]:
        for field, one in BY_FIELD.items():
            if not one.admits(getattr(self, field)):
                yield one.misfit

    def _contradictions(self) -> Iterator[Fault]:
        for relation in self.inequalities():
            if not relation.holds:
                yield Fault(relation.names, f"{relation.text} does not hold")
        mode = _name("dispatch_mode")
        for field, one in BY_FIELD.items():
            if one.needed is self.dispatch_mode and getattr(self, field) is None:
                yield Fault((one.name,), f"{one.name} is required with {mode}={one.needed}")
        half = (self.tasks_oidc_audience is None) is not (self.tasks_invoker_sa is None)
        if half and self.dispatch_mode is not CLOUD_TASKS:
            audience, invoker = _name("tasks_oidc_audience"), _name("tasks_invoker_sa")
            yield Fault((audience, invoker), f"{audience} and {invoker} need each other")
        if self.admit_loopback_destinations and self.dispatch_mode is not EMBEDDED:
            loopback = _name("admit_loopback_destinations")
            yield Fault((loopback, mode), f"{loopback}=true needs {mode}={EMBEDDED}")
        if (self.tasks_handler_url or "").startswith("http:") and not self.tasks_emulator:
            handler, emulator = _name("tasks_handler_url"), _name("tasks_emulator")
            yield Fault((handler, emulator), f"{handler} must be https without {emulator}")
        if self.scheduler_sa is not None and self.tasks_oidc_audience is None:
            scheduler, audience = _name("scheduler_sa"), _name("tasks_oidc_audience")
            yield Fault((scheduler, audience), f"{scheduler} needs {audience}")


BY_FIELD: Mapping[str, Setting] = {
    field.name: field.metadata["setting"]
    for field in dataclasses.fields(Settings)
    if "setting" in field.metadata
}
SETTINGS: tuple[Setting, ...] = tuple(BY_FIELD.values())


def _name(field: str) -> str:
    return BY_FIELD[field].name


def _mode(texts: Mapping[str, str]) -> DispatchMode:
    """Return the mode whose defaults apply; that of an unset or broken one is `inline`."""
    one = BY_FIELD["dispatch_mode"]
    mode = one.read(texts.get(one.name, ""))
    return mode if isinstance(mode, DispatchMode) else DispatchMode.INLINE


def _read(one: Setting, text: str | None, mode: DispatchMode) -> Any:
    """Return the value of a setting, or the `Fault` of its text."""
    if text is None:
        return one.standing(mode)
    if not text.strip():
        return Fault((one.name,), f"{one.name} is blank: give it a value or remove it")
    value = one.read(text)
    return one.misfit if value is None else value


def _unknown(names: Iterable[str]) -> Iterator[Fault]:
    """Find names that start like ours, in any case, and are none: a typo must not be silent."""
    known = {one.name.removeprefix(_OURS[0]): one.name for one in SETTINGS}
    present = frozenset(names)
    for name in sorted(present.difference(known.values())):
        link = _SERVICE_LINK.fullmatch(name)
        if not name.upper().startswith(_OURS) or (link and f"{link[1]}_SERVICE_HOST" in present):
            continue
        near = difflib.get_close_matches(name.upper().removeprefix(_OURS[0]), known, 1, 0.8)
        hint = "".join(f"; is it {known[tail]}?" for tail in near)
        yield Fault((name,), f"{ascii(name)[1:-1][:100]} is not a setting{hint}")
