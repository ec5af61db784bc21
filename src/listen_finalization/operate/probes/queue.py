"""The queue and its policy, through the client that hands jobs over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import TypeVar

from google.api_core import exceptions
from google.auth.exceptions import GoogleAuthError
from google.cloud import tasks_v2

from listen_finalization.dispatch.cloud_tasks import open_client
from listen_finalization.errors import CredentialsMissingError
from listen_finalization.operate.facts import Blind, Look, Missing, Policy, QueueFacts, Unseen
from listen_finalization.operate.probes.reach import Reach

T = TypeVar("T")

_BLIND: Mapping[type[Exception], Blind] = {
    exceptions.PermissionDenied: Blind.FORBIDDEN,
    exceptions.Unauthenticated: Blind.NO_CREDENTIALS,
    exceptions.MethodNotImplemented: Blind.NOT_OFFERED,
    exceptions.ServiceUnavailable: Blind.UNREACHABLE,
    exceptions.DeadlineExceeded: Blind.TIMED_OUT,
}


async def look_at_queue(reach: Reach) -> Look[QueueFacts]:
    """Return the queue of the deploy files as it is."""

    async def ask(client: tasks_v2.CloudTasksAsyncClient) -> QueueFacts:
        name = reach.deployed.queue_path
        found = await client.get_queue(name=name, retry=None, timeout=reach.deadline)
        return _facts(found)

    return await _asked(reach, ask)


async def look_at_queue_policy(reach: Reach) -> Look[Policy]:
    """Return who has which role on that queue."""

    async def ask(client: tasks_v2.CloudTasksAsyncClient) -> Policy:
        asked = {
            "resource": reach.deployed.queue_path,
            "options": {"requested_policy_version": 3},
        }
        found = await client.get_iam_policy(request=asked, retry=None, timeout=reach.deadline)
        return Policy(
            frozenset(
                (binding.role, member)
                for binding in found.bindings
                if not binding.condition.expression
                for member in binding.members
            )
        )

    return await _asked(reach, ask)


async def _asked(
    reach: Reach, ask: Callable[[tasks_v2.CloudTasksAsyncClient], Awaitable[T]]
) -> Look[T]:
    async with AsyncExitStack() as closing:
        try:
            client = await open_client(reach.settings.tasks_emulator)
            closing.push_async_callback(client.transport.close)
            return await ask(client)
        except exceptions.NotFound:
            return Missing()
        except exceptions.GoogleAPICallError as refused:
            if getattr(refused, "reason", None) == "SERVICE_DISABLED":
                return Unseen(Blind.API_DISABLED)
            return Unseen(_BLIND.get(type(refused), Blind.ODD_ANSWER))
        except (GoogleAuthError, CredentialsMissingError):
            return Unseen(Blind.NO_CREDENTIALS)


def _facts(queue: tasks_v2.Queue) -> QueueFacts:
    rates, retry = queue.rate_limits, queue.retry_config
    return QueueFacts(
        running=queue.state == tasks_v2.Queue.State.RUNNING,
        max_attempts=retry.max_attempts,
        max_concurrent=rates.max_concurrent_dispatches,
        max_rate=rates.max_dispatches_per_second,
        min_backoff=retry.min_backoff.total_seconds(),
        max_backoff=retry.max_backoff.total_seconds(),
        max_doublings=retry.max_doublings,
        retry_seconds=retry.max_retry_duration.total_seconds(),
    )
