"""The embedded stack: everything in one process over one file."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from fastapi import FastAPI

from listen_finalization.admission import Admission
from listen_finalization.auth.issuer import LocalIssuer, TokenMinter
from listen_finalization.auth.policy import PolicyName, TokenPolicy
from listen_finalization.auth.verifier import TokenVerifier
from listen_finalization.dispatch.embedded import EmbeddedDispatcher
from listen_finalization.dispatch.in_process import InProcessWorker
from listen_finalization.dispatch.processes import LEADER, PROCESSES, Election, ProcessRegistry
from listen_finalization.domain.budgets import DispatchMode
from listen_finalization.errors import SettingsError, StoreUnavailableError
from listen_finalization.http.app import CustomerServices, Services, build_app
from listen_finalization.http.health import slots_part, store_part
from listen_finalization.http.limiter import RateLimiter
from listen_finalization.http.tasks import WorkerRoute
from listen_finalization.observe.signals import Signals
from listen_finalization.outbox.database import DATABASE
from listen_finalization.outbox.sqlite import SqliteStore
from listen_finalization.periodic import Periodic
from listen_finalization.processing.protocol import Processor
from listen_finalization.reconcile import Reconciler, Recovery
from listen_finalization.settings import RUN_PATH, Settings
from listen_finalization.stack.runs import Runs

WORKER_BASE = "https://worker.listen-finalization.invalid"
LOCAL_AUDIENCE = WORKER_BASE + RUN_PATH
LOCAL_INVOKER = "dispatcher@listen-finalization.invalid"


class Stack:
    """One process of the embedded mode: API, worker, dispatcher and reconciler over one file.

    An async context manager: entering it starts the background work and returns at once, leaving
    it drains, releases what cannot finish within the grace time, and closes every file.
    """

    def __init__(self, settings: Settings, *, processor: Processor | None = None) -> None:
        """Build every part; nothing runs yet. A `processor` given here goes before the setting's.

        Raises `SettingsError` for a mode that this version cannot run, `StoreError` where the
        data directory cannot be used, and `KeyFileError` for its key files.
        """
        directory = _directory(settings)
        self.settings = settings
        self.signals = Signals()
        self.store = SqliteStore(directory / DATABASE, settings.policy())
        self.registry = ProcessRegistry(directory / PROCESSES)
        self.users = LocalIssuer.open(directory, "users")
        self._tasks = LocalIssuer.open(directory, "tasks")
        self.dispatcher = self._new_dispatcher(directory)
        self.admission = Admission(self.store.outbox, self.dispatcher, self.signals)
        self.runs = Runs(
            settings, self.store, self.dispatcher, self.registry, self.signals, processor=processor
        )
        self.finalizer = self.runs.finalizer
        self.destinations = self.runs.destinations
        self.reconciler = self._new_reconciler()
        self._rounds = Periodic(
            self._round,
            self.signals,
            interval=settings.reconcile_interval_seconds,
            limit=settings.reconcile_interval_seconds,
        )
        self.app = self._new_app()
        self.worker = InProcessWorker(self.app)

    def _new_dispatcher(self, directory: Path) -> EmbeddedDispatcher:
        minter = TokenMinter(self._tasks, audience=LOCAL_AUDIENCE, email=LOCAL_INVOKER)
        return EmbeddedDispatcher(
            self.store.outbox,
            minter.token,
            self.registry,
            Election(directory / LEADER),
            self.signals,
            slots=self.settings.slots,
            data_version=self.store.data_version,
            outlived=lambda: self.runs.slots.outlived,
        )

    def _new_reconciler(self) -> Reconciler:
        return Reconciler(
            self.store.outbox,
            self.store.records,
            self.dispatcher,
            self.signals,
            recovery=Recovery.LEAVE,
            interval=self.settings.reconcile_interval_seconds,
            stale=self.settings.reconcile_stale_seconds,
        )

    def _new_app(self) -> FastAPI:
        tasks = TokenPolicy.local_service(PolicyName.TASKS, LOCAL_AUDIENCE, email=LOCAL_INVOKER)
        invoker = TokenVerifier(tasks, self._tasks.key_source())
        users = TokenPolicy.local_users(self._project)
        return build_app(
            Services(
                signals=self.signals,
                customers=CustomerServices(
                    verifier=TokenVerifier(users, self.users.key_source()),
                    admission=self.admission,
                    outbox=self.store.outbox,
                    max_attempts=self.settings.tasks_max_attempts,
                    durable=self.settings.durable_mode,
                    embedded=self.store.conversations,
                    limiter=RateLimiter(self.settings.finalize_per_minute),
                ),
                worker=WorkerRoute(invoker, self.finalizer, self.signals),
                parts={
                    "store": store_part(self.store.outbox, lambda: self.store.broken),
                    "slots": slots_part(self.runs.slots),
                },
            )
        )

    @property
    def broken(self) -> bool:
        """Whether this process must end because its store cannot be trusted."""
        return self.store.broken

    @property
    def _project(self) -> str:
        return self.settings.firebase_project or "local"

    async def _round(self) -> object:
        return await self.reconciler.run_once() if self.dispatcher.leads else None

    async def __aenter__(self) -> Self:
        await self.runs.__aenter__()
        self.registry.prune()
        self.dispatcher.start(self.worker)
        self._rounds.start()
        return self

    async def drain(self) -> None:
        """Deliver nothing more, take no new run, and end those under way. May be called again."""
        await self.dispatcher.stop()
        await self._rounds.stop()
        await self.runs.drain()

    async def __aexit__(self, *_: object) -> None:
        await self.drain()
        await self.dispatcher.landed()
        await self.runs.__aexit__(None, None, None)
        self.registry.close()
        self.store.close()

    def user_token(self, uid: str) -> str:
        """Mint a customer's token of the local issuer, good for one hour."""
        return self.users.mint_user_token(uid, self._project)


def _directory(settings: Settings) -> Path:
    if settings.dispatch_mode is not DispatchMode.EMBEDDED or settings.data_dir is None:
        raise SettingsError(
            "LISTEN_FINALIZATION_DISPATCH_MODE: an embedded stack runs the embedded mode only"
        )
    try:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailableError from error
    return settings.data_dir
