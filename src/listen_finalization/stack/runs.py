"""What runs jobs in a process: slots, steps and deliveries under one finalizer."""

from __future__ import annotations

from typing import Self

from listen_finalization.finalizer import Finalizer
from listen_finalization.observe.signals import Signals
from listen_finalization.ports import Dispatcher, Liveness, Store
from listen_finalization.processing.destinations import Destinations
from listen_finalization.processing.fanout import Fanout
from listen_finalization.processing.loading import load_processor
from listen_finalization.processing.pipeline import Pipeline
from listen_finalization.processing.protocol import Processor
from listen_finalization.processing.slots import Slots
from listen_finalization.processing.webhooks import WebhookSender
from listen_finalization.runlock.opening import open_run_lock
from listen_finalization.settings import Settings


class Runs:
    """The finalizer of a process with all that it needs; entered before its first delivery."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        dispatcher: Dispatcher,
        liveness: Liveness,
        signals: Signals,
        *,
        processor: Processor | None = None,
    ) -> None:
        """Build the parts. A `processor` given here goes before the setting's.

        Raises `SettingsError` for a processor or a run lock whose package is not installed.
        """
        self._grace = settings.shutdown_grace_seconds
        self.processor = processor or load_processor(settings.processor)
        self.slots = Slots(settings.slots)
        self.destinations = Destinations(store.records)
        self._sender = WebhookSender(
            admit_loopback=settings.admit_loopback_destinations,
            time_limit=settings.delivery_timeout_seconds,
        )
        self.run_lock = open_run_lock(
            settings.run_lock_url,
            store.outbox,
            liveness,
            signals,
            ttl=settings.run_lock_ttl_seconds,
        )
        self.finalizer = Finalizer(
            store.outbox,
            Pipeline(
                self.processor,
                store.conversations,
                Fanout(self.destinations, self._sender),
            ),
            dispatcher,
            liveness,
            self.slots,
            signals,
            lease=settings.policy().lease,
            run_timeout=settings.run_timeout_seconds,
            run_lock=self.run_lock,
        )

    async def __aenter__(self) -> Self:
        await self._sender.__aenter__()
        return self

    async def drain(self) -> None:
        """Refuse new deliveries; end the runs, or release their leases, within the grace time."""
        await self.finalizer.close(self._grace)

    async def __aexit__(self, *_: object) -> None:
        await self.drain()
        await self._sender.__aexit__(None, None, None)
        if self.run_lock is not None:
            await self.run_lock.close()
