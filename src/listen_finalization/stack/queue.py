"""What a mode hands over to, with what must be closed behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from listen_finalization.dispatch.inline import InlineDispatcher
from listen_finalization.domain.budgets import DispatchMode
from listen_finalization.observe.signals import Signals
from listen_finalization.ports import Dispatcher
from listen_finalization.settings import Settings


async def _nothing() -> None:
    return


@dataclass(frozen=True, slots=True)
class Queue:
    """A dispatcher and the end of its client."""

    dispatcher: Dispatcher
    close: Callable[[], Awaitable[None]] = _nothing


async def open_queue(settings: Settings, signals: Signals) -> Queue:
    """Return the queue of a production mode: Cloud Tasks, or in the `inline` mode none.

    Needs the `google` extra, and raises `CredentialsMissingError`.
    """
    if settings.dispatch_mode is not DispatchMode.CLOUD_TASKS:
        return Queue(InlineDispatcher())
    from listen_finalization.dispatch.cloud_tasks import CloudTasksDispatcher, open_client

    dispatcher = CloudTasksDispatcher(
        await open_client(settings.tasks_emulator),
        settings.queue_path,
        handler_url=settings.tasks_handler_url or "",
        audience=settings.tasks_oidc_audience or "",
        invoker=settings.tasks_invoker_sa or "",
        deadline_seconds=settings.tasks_dispatch_deadline_seconds,
        signals=signals,
    )
    return Queue(dispatcher, dispatcher.close)
