"""The production stack: one role of the product over Firestore, in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

import httpx

from listen_finalization.admission import Admission
from listen_finalization.auth.identities import (
    KeyServers,
    customer_verifier,
    scheduler_verifier,
    task_verifier,
)
from listen_finalization.dispatch.remote import RemoteProcesses
from listen_finalization.domain.budgets import DispatchMode
from listen_finalization.errors import SettingsError
from listen_finalization.http.app import CustomerServices, Services, build_app
from listen_finalization.http.health import Part, slots_part, store_part
from listen_finalization.http.limiter import RateLimiter
from listen_finalization.http.rounds import RoundRoute
from listen_finalization.http.tasks import WorkerRoute
from listen_finalization.observe.signals import Signals
from listen_finalization.outbox.firestore import FirestoreStore
from listen_finalization.periodic import Periodic
from listen_finalization.processing.protocol import Processor
from listen_finalization.reconcile import Reconciler, Recovery
from listen_finalization.settings import BY_FIELD, Settings
from listen_finalization.stack.queue import Queue, open_queue
from listen_finalization.stack.runs import Runs


class Role(StrEnum):
    """What deploys separately: each role is a process of its own, `all` is one for everything."""

    API = "api"
    WORKER = "worker"
    LIVE = "live"
    ALL = "all"

    @property
    def answers_customers(self) -> bool:
        return self in (Role.API, Role.ALL)

    @property
    def answers_tasks(self) -> bool:
        return self in (Role.WORKER, Role.ALL)

    @property
    def runs_jobs(self) -> bool:
        return self is not Role.API

    def recovery(self, mode: DispatchMode) -> Recovery | None:
        """Return what this role's rounds do with due jobs; None where it holds no rounds.

        In the `inline` mode the pusher's process runs them itself (contract 12).
        """
        live = self in (Role.LIVE, Role.ALL)
        if mode is DispatchMode.INLINE:
            return Recovery.RUN if live else Recovery.LEAVE
        return None if self is Role.LIVE else Recovery.HAND_OVER


class Production:
    """One role over Firestore, with Cloud Tasks where the mode has a queue.

    Made by `open`, in the event loop that serves it. An async context manager: entering it starts
    the rounds and returns at once; leaving it drains the runs, releases the leases of what cannot
    end within the grace time, and closes every client.
    """

    broken = False
    """Nothing that happens to a remote store asks for a new process."""

    def __init__(
        self,
        settings: Settings,
        role: Role,
        queue: Queue,
        signals: Signals,
        *,
        processor: Processor | None = None,
    ) -> None:
        """For `open`: `queue` becomes the stack's, to be closed."""
        self.settings = settings
        self.role = role
        self.signals = signals
        self._queue = queue
        self._client = httpx.AsyncClient()
        self._keys = KeyServers(self._client)
        self.store = FirestoreStore(
            settings.store_project or "", settings.policy(), database=settings.firestore_database
        )
        self.runs = self._new_runs(processor) if role.runs_jobs else None
        self.reconciler = self._new_reconciler(role.recovery(settings.dispatch_mode))
        self._rounds = self._new_rounds()
        self.app = build_app(self._services())

    @classmethod
    async def open(
        cls, settings: Settings, role: Role, *, processor: Processor | None = None
    ) -> Self:
        """Build every part; nothing runs yet. A `processor` given here goes before the setting's.

        Raises `SettingsError`, naming what the role misses, `ExtraMissingError`, and
        `CredentialsMissingError`.
        """
        _demand(settings, role)
        signals = Signals()
        queue = await open_queue(settings, signals)
        try:
            return cls(settings, role, queue, signals, processor=processor)
        except BaseException:
            await queue.close()
            raise

    def _new_runs(self, processor: Processor | None) -> Runs:
        return Runs(
            self.settings,
            self.store,
            self._queue.dispatcher,
            RemoteProcesses(),
            self.signals,
            processor=processor,
        )

    def _new_reconciler(self, recovery: Recovery | None) -> Reconciler | None:
        if recovery is None:
            return None
        return Reconciler(
            self.store.outbox,
            self.store.records,
            self._queue.dispatcher,
            self.signals,
            recovery=recovery,
            finalizer=self.runs.finalizer if self.runs is not None else None,
            interval=self.settings.reconcile_interval_seconds,
            stale=self.settings.reconcile_stale_seconds,
        )

    def _new_rounds(self) -> Periodic | None:
        if self.reconciler is None:
            return None
        interval = self.settings.reconcile_interval_seconds
        return Periodic(self.reconciler.run_once, self.signals, interval=interval, limit=interval)

    def _services(self) -> Services:
        return Services(
            signals=self.signals,
            customers=self._customers() if self.role.answers_customers else None,
            worker=self._worker(),
            rounds=self._trigger(),
            parts=self._parts(),
        )

    def _customers(self) -> CustomerServices:
        verifier = customer_verifier(
            self._keys,
            project=self.settings.firebase_project or "",
            certs_url=self.settings.firebase_certs_url,
        )
        return CustomerServices(
            verifier=verifier,
            admission=Admission(self.store.outbox, self._queue.dispatcher, self.signals),
            outbox=self.store.outbox,
            max_attempts=self.settings.tasks_max_attempts,
            durable=self.settings.durable_mode,
            limiter=RateLimiter(self.settings.finalize_per_minute),
        )

    def _worker(self) -> WorkerRoute | None:
        """Return the task route, in every mode in which its identity is configured."""
        invoker, audience = self.settings.tasks_invoker_sa, self.settings.tasks_oidc_audience
        if not self.role.answers_tasks or self.runs is None or not invoker or not audience:
            return None
        certs = self.settings.google_certs_url
        verifier = task_verifier(self._keys, audience=audience, invoker=invoker, certs_url=certs)
        return WorkerRoute(verifier, self.runs.finalizer, self.signals)

    def _trigger(self) -> RoundRoute | None:
        """Return the scheduler's route, where its account is named."""
        account, audience = self.settings.scheduler_sa, self.settings.tasks_oidc_audience
        if self.reconciler is None or not account or not audience:
            return None
        certs = self.settings.google_certs_url
        verifier = scheduler_verifier(
            self._keys, audience=audience, account=account, certs_url=certs
        )
        return RoundRoute(verifier, self._round, self.signals)

    async def _round(self) -> Mapping[str, int]:
        assert self.reconciler is not None
        return (await self.reconciler.run_once()).counts()

    def _parts(self) -> Mapping[str, Part]:
        parts = {"store": store_part(self.store.outbox, lambda: self.broken)}
        if self.runs is not None:
            parts["slots"] = slots_part(self.runs.slots)
        return parts

    async def __aenter__(self) -> Self:
        if self.runs is not None:
            await self.runs.__aenter__()
        if self._rounds is not None:
            self._rounds.start()
        return self

    async def drain(self) -> None:
        """Hold no further round, take no new run, and end those under way. May be called again."""
        if self._rounds is not None:
            await self._rounds.stop()
        if self.runs is not None:
            await self.runs.drain()

    async def __aexit__(self, *_: object) -> None:
        await self.drain()
        if self.runs is not None:
            await self.runs.__aexit__(None, None, None)
        await self._keys.aclose()
        await self._client.aclose()
        await self._queue.close()
        await self.store.close()


def _demand(settings: Settings, role: Role) -> None:
    """Raise `SettingsError` for what the settings allow and this role cannot do without."""
    if settings.dispatch_mode is DispatchMode.EMBEDDED:
        mode = BY_FIELD["dispatch_mode"].name
        raise SettingsError(f"{mode}: the embedded mode is run by `listen-finalization up`")
    needed = {"firestore_project": settings.store_project}
    if role.answers_customers:
        needed["firebase_project"] = settings.firebase_project
    if role is Role.WORKER:
        needed["tasks_oidc_audience"] = settings.tasks_oidc_audience
        needed["tasks_invoker_sa"] = settings.tasks_invoker_sa
    missing = [BY_FIELD[field].name for field, value in needed.items() if not value]
    if missing:
        raise SettingsError(f"the role {role} needs {' and '.join(missing)}")
