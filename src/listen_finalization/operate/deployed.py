"""The deploy files as this package reads them: one settings file and the Firestore files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from listen_finalization.errors import ListenFinalizationError
from listen_finalization.operate.schema import Field, Index, Retention
from listen_finalization.settings import RUN_PATH

_SHIPPED = "your-"
"""How the project of a settings file begins that nobody has written a project into."""

_ENVIRONMENT = re.compile(r"[A-Za-z0-9_-]{1,64}")


class DeployFilesError(ListenFinalizationError):
    """The deploy files cannot be used; the message names the file, never what it holds."""


@dataclass(frozen=True, slots=True)
class DeployedQueue:
    """The queue of the settings file; seconds are whole."""

    name: str
    max_attempts: int
    max_concurrent_dispatches: int
    max_dispatches_per_second: int
    min_backoff_seconds: int
    max_backoff_seconds: int
    max_doublings: int


@dataclass(frozen=True, slots=True)
class DeployedService:
    """One role's Cloud Run service; `environment` is what the file adds for this role alone."""

    name: str
    ingress: str
    timeout_seconds: int
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Deployed:
    """What the deploy files say of one environment."""

    directory: str
    environment: str
    project: str
    location: str
    mode: str
    users_project: str
    queue: DeployedQueue | None
    budgets: Mapping[str, int]
    database: str
    accounts: Mapping[str, str]
    services: Mapping[str, DeployedService]
    run_lock: bool
    indexes: frozenset[Index]
    fields: Mapping[tuple[str, str], Field]
    retention: Retention

    @property
    def worker(self) -> DeployedService | None:
        """The service that Cloud Tasks delivers to; None without a queue."""
        return self.services.get("worker") if self.queue is not None else None

    @property
    def queue_path(self) -> str:
        """Full name of the queue; the check of one without a queue does not ask for it."""
        name = self.queue.name if self.queue is not None else ""
        return f"projects/{self.project}/locations/{self.location}/queues/{name}"

    @property
    def database_path(self) -> str:
        return f"projects/{self.project}/databases/{self.database}"

    @property
    def enqueuers(self) -> tuple[str, ...]:
        """Addresses of the accounts that hand jobs over: those of all services."""
        return tuple(self.email(role) for role in self.services)

    @property
    def callers(self) -> tuple[str, ...]:
        """Addresses of the accounts that call the worker."""
        return tuple(self.email(role) for role in ("invoker", "scheduler") if role in self.accounts)

    def email(self, role: str) -> str:
        """Return the address of a role's service account."""
        return f"{self.accounts.get(role, role)}@{self.project}.iam.gserviceaccount.com"


def read_deployed(directory: Path, environment: str) -> Deployed:
    """Read the deploy files of an environment: `environment` is the name of its settings file.

    Raises `DeployFilesError` where a file is missing, is not JSON or lacks a part.
    """
    if not _ENVIRONMENT.fullmatch(environment):
        raise DeployFilesError("the name of an environment has letters, digits, - and _ alone")
    settings = directory / f"{environment}.json"
    own = _parts(settings, _environment)
    firestore = directory / "firestore"
    retention = _parts(firestore / "ttl.json", _retention)
    indexes, fields = _parts(firestore / "indexes.json", _indexes)
    # The retained field has no index of its own either: Terraform makes both in one resource.
    fields = {(retention.collection, retention.field): Field(frozenset())} | fields
    return Deployed(
        directory=str(directory),
        environment=environment,
        indexes=indexes,
        fields=fields,
        retention=retention,
        **own,
    )


def _parts(path: Path, read: Callable[[Any], Any]) -> Any:
    try:
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise DeployFilesError(f"{path} cannot be read") from error
    except ValueError as error:
        raise DeployFilesError(f"{path} is not JSON") from error
    try:
        return read(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DeployFilesError(f"{path} lacks a part, or one is of another kind") from error
    except DeployFilesError as error:
        raise DeployFilesError(f"{path}: {error}") from error


def _environment(file: Mapping[str, Any]) -> dict[str, Any]:
    project = str(file["project"])
    if project.startswith(_SHIPPED):
        raise DeployFilesError("write the id of your project into it first")
    return {
        "project": project,
        "location": str(file["location"]),
        "mode": str(file["dispatch_mode"]),
        "users_project": str(file["firebase_project"] or project),
        "queue": None if file["queue"] is None else _queue(file["queue"]),
        "budgets": {name: int(value) for name, value in file["budgets"].items()},
        "database": str(file["firestore"]["database"]),
        "accounts": {role: str(name) for role, name in file["accounts"].items()},
        "services": {role: _service(one) for role, one in file["services"].items()},
        "run_lock": file["run_lock"] is not None,
    }


def _queue(told: Mapping[str, Any]) -> DeployedQueue:
    numbers = {name: int(told[name]) for name in DeployedQueue.__slots__ if name != "name"}
    return DeployedQueue(name=str(told["name"]), **numbers)


def _service(told: Mapping[str, Any]) -> DeployedService:
    own = {name: str(value) for name, value in told["environment"].items()}
    return DeployedService(
        str(told["name"]), str(told["ingress"]), int(told["timeout_seconds"]), own
    )


def _retention(told: Mapping[str, Any]) -> Retention:
    return Retention(told["collectionGroup"], told["fieldPath"], told["expirationOffset"])


def _indexes(told: Mapping[str, Any]) -> tuple[frozenset[Index], dict[tuple[str, str], Field]]:
    composite = frozenset(
        Index(one["collectionGroup"], one["queryScope"], _ordered(one["fields"]))
        for one in told["indexes"]
    )
    single = {
        (one["collectionGroup"], one["fieldPath"]): Field(
            frozenset((index["queryScope"], index["order"]) for index in one["indexes"])
        )
        for one in told["fieldOverrides"]
    }
    return composite, single


def _ordered(fields: Any) -> tuple[tuple[str, str], ...]:
    return tuple((field["fieldPath"], field["order"]) for field in fields)


def handler_pattern(deployed: Deployed) -> str:
    """Return where the worker answers, as Cloud Run makes it of a project's number, for people."""
    name = deployed.worker.name if deployed.worker is not None else ""
    return f"https://{name}-NUMBER.{deployed.location}.run.app{RUN_PATH}"
