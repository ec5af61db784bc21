"""The dispatcher of production: one named task per job and generation (contract 7).

A hand-over is asked for and never waited out: the row keeps its due time whatever comes of it, so
the reconciler, not this module, is what makes a lost task good.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import google.auth
import grpc  # type: ignore[import-untyped]
from google.api_core import exceptions
from google.auth.exceptions import GoogleAuthError
from google.cloud import tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks import async_client
from google.cloud.tasks_v2.services.cloud_tasks.transports import (
    CloudTasksGrpcAsyncIOTransport,
    grpc_asyncio,
)

from listen_finalization.domain.budgets import MAX_DISPATCH_DEADLINE
from listen_finalization.domain.identity import task_name
from listen_finalization.domain.job import Job
from listen_finalization.errors import CredentialsMissingError
from listen_finalization.observe.quiet import keep_requests_out_of_logs
from listen_finalization.observe.signals import Event, Signals

TIME_LIMIT = 3.0
"""Seconds that one hand-over may take in all; the customer's request waits for it."""

REPEAT_AFTER = 0.2
"""Seconds before the one repeat of a call that found the service unavailable."""

LEAST_DISPATCH_DEADLINE = 15
"""Seconds (Cloud Tasks reference, Task.dispatch_deadline)."""

FURTHEST = timedelta(days=30) - timedelta(hours=1)
"""How far ahead a task is scheduled at most: Cloud Tasks takes 30 days, by its own clock."""

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


class TaskOutcome(StrEnum):
    """What came of asking for a task."""

    CREATED = "created"
    EXISTS = "exists"
    PERMISSION_DENIED = "permission_denied"
    UNAUTHENTICATED = "unauthenticated"
    QUEUE_MISSING = "queue_missing"
    QUEUE_CLOSED = "queue_closed"
    INVALID = "invalid"
    UNIMPLEMENTED = "unimplemented"
    EXHAUSTED = "exhausted"
    UNAVAILABLE = "unavailable"
    UNCERTAIN = "uncertain"
    OTHER = "other"


OUTCOMES: Mapping[grpc.StatusCode, TaskOutcome] = {
    grpc.StatusCode.OK: TaskOutcome.CREATED,
    grpc.StatusCode.ALREADY_EXISTS: TaskOutcome.EXISTS,
    grpc.StatusCode.PERMISSION_DENIED: TaskOutcome.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED: TaskOutcome.UNAUTHENTICATED,
    grpc.StatusCode.NOT_FOUND: TaskOutcome.QUEUE_MISSING,
    grpc.StatusCode.FAILED_PRECONDITION: TaskOutcome.QUEUE_CLOSED,
    grpc.StatusCode.INVALID_ARGUMENT: TaskOutcome.INVALID,
    grpc.StatusCode.OUT_OF_RANGE: TaskOutcome.INVALID,
    grpc.StatusCode.UNIMPLEMENTED: TaskOutcome.UNIMPLEMENTED,
    grpc.StatusCode.RESOURCE_EXHAUSTED: TaskOutcome.EXHAUSTED,
    grpc.StatusCode.UNAVAILABLE: TaskOutcome.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED: TaskOutcome.UNCERTAIN,
    grpc.StatusCode.CANCELLED: TaskOutcome.UNCERTAIN,
    grpc.StatusCode.ABORTED: TaskOutcome.UNCERTAIN,
    grpc.StatusCode.INTERNAL: TaskOutcome.UNCERTAIN,
    grpc.StatusCode.UNKNOWN: TaskOutcome.UNCERTAIN,
    grpc.StatusCode.DATA_LOSS: TaskOutcome.UNCERTAIN,
}
"""Every status of gRPC; what is not one of its own is OTHER."""

TAKEN = frozenset({TaskOutcome.CREATED, TaskOutcome.EXISTS})
"""Outcomes that are no failure.

EXISTS says that this generation was asked for before, by a repeated request or by a call whose
answer was lost. It is no proof that a task will run, and nothing is concluded from it: the row
keeps its due time, and the reconciler's next generation has a name of its own.
"""

_OPERATOR = frozenset(
    {
        TaskOutcome.PERMISSION_DENIED,
        TaskOutcome.UNAUTHENTICATED,
        TaskOutcome.QUEUE_MISSING,
        TaskOutcome.QUEUE_CLOSED,
        TaskOutcome.INVALID,
        TaskOutcome.UNIMPLEMENTED,
    }
)
"""Outcomes that stay until somebody changes the deployment."""


async def open_client(endpoint: str | None = None) -> tasks_v2.CloudTasksAsyncClient:
    """Return a client for this event loop: Google's service, or a server on this machine.

    `endpoint` is `host:port` of a Cloud Tasks server on loopback, reached without TLS and without
    credentials. Raises `ValueError` for one that other machines could answer for, and
    `CredentialsMissingError` where there is no account to call Google with.

    The default credentials are looked for in a thread, because that reads files and may ask the
    metadata server. A token is refreshed in gRPC's own thread, never on the event loop.
    """
    keep_requests_out_of_logs(async_client, grpc_asyncio)
    if endpoint is None:
        try:
            credentials, _ = await asyncio.to_thread(google.auth.default, scopes=_SCOPES)
        except GoogleAuthError as error:
            raise CredentialsMissingError from error
        return tasks_v2.CloudTasksAsyncClient(credentials=credentials)
    if not _loopback(endpoint):
        raise ValueError("a Cloud Tasks endpoint must be host:port on loopback")
    transport = CloudTasksGrpcAsyncIOTransport(channel=grpc.aio.insecure_channel(endpoint))
    return tasks_v2.CloudTasksAsyncClient(transport=transport)


class CloudTasksDispatcher:
    """Asks Cloud Tasks for one delivery of a job's present generation; a `ports.Dispatcher`."""

    def __init__(
        self,
        client: tasks_v2.CloudTasksAsyncClient,
        queue: str,
        *,
        handler_url: str,
        audience: str,
        invoker: str,
        deadline_seconds: float,
        signals: Signals,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Hand over to `queue`, a full name, whose deliveries go to `handler_url`.

        `audience` and the account `invoker` are those of the delivery's token. The client becomes
        the dispatcher's, to be closed. `now` is wall time in epoch seconds. Raises `ValueError`,
        naming the argument, for a blank one or a deadline that Cloud Tasks does not allow.
        """
        named = {"queue": queue, "handler_url": handler_url, "audience": audience}
        for name, value in {**named, "invoker": invoker}.items():
            if not value.strip():
                raise ValueError(f"{name} is blank")
        if not LEAST_DISPATCH_DEADLINE <= deadline_seconds <= MAX_DISPATCH_DEADLINE:
            raise ValueError(
                f"deadline_seconds must be {LEAST_DISPATCH_DEADLINE} to {MAX_DISPATCH_DEADLINE}"
            )
        self._client = client
        self._queue = queue
        self._url = handler_url
        self._token = tasks_v2.OidcToken(service_account_email=invoker, audience=audience)
        self._deadline = timedelta(seconds=deadline_seconds)
        self._signals = signals
        self._now = now

    async def hand_over(self, job: Job, *, delay: int = 0) -> bool:
        """Ask for the task, within TIME_LIMIT and whatever happens; True only for TAKEN.

        What is not CREATED is told as `Event.TASK_NOT_CREATED` with its outcome; the caller counts
        a False as the failed hand-over that it is. Never raises, but for its own cancellation.
        """
        outcome, fault = await self._ask(self._request(job, delay))
        if outcome is not TaskOutcome.CREATED:
            self._signals.emit(
                Event.TASK_NOT_CREATED,
                code=outcome,
                job_id=job.job_id,
                fault=fault,
                level=_level(outcome),
            )
        return outcome in TAKEN

    async def close(self) -> None:
        """Close the client's channel."""
        await self._client.transport.close()  # type: ignore[no-untyped-call]

    async def _ask(
        self, request: tasks_v2.CreateTaskRequest
    ) -> tuple[TaskOutcome, Exception | None]:
        """Call once, and once more where the service was unavailable.

        The name makes the repeat harmless. A connection that an idle hour or a deploy has closed
        is common, and without the repeat it would cost the job the stale seconds.
        """
        try:
            async with asyncio.timeout(TIME_LIMIT):
                outcome, fault = await self._call(request)
                if outcome is TaskOutcome.UNAVAILABLE:
                    await asyncio.sleep(REPEAT_AFTER)
                    outcome, fault = await self._call(request)
                return outcome, fault
        except TimeoutError as late:
            return TaskOutcome.UNCERTAIN, late

    async def _call(
        self, request: tasks_v2.CreateTaskRequest
    ) -> tuple[TaskOutcome, Exception | None]:
        try:
            await self._client.create_task(request, retry=None, timeout=TIME_LIMIT)
        except exceptions.GoogleAPICallError as refused:
            return OUTCOMES.get(refused.grpc_status_code, TaskOutcome.OTHER), refused
        except Exception as fault:  # noqa: BLE001 - a client and its plugins may raise anything
            return TaskOutcome.OTHER, fault
        return TaskOutcome.CREATED, None

    def _request(self, job: Job, delay: int) -> tasks_v2.CreateTaskRequest:
        name = task_name(job.job_id, job.dispatch_generation)
        body = {"job_id": job.job_id, "dispatch_generation": job.dispatch_generation}
        task: dict[str, Any] = {
            "name": f"{self._queue}/tasks/{name}",
            "http_request": tasks_v2.HttpRequest(
                url=self._url,
                http_method=tasks_v2.HttpMethod.POST,
                headers={"Content-Type": "application/json"},
                body=json.dumps(body).encode(),
                oidc_token=self._token,
            ),
            "dispatch_deadline": self._deadline,
        }
        if delay > 0:
            ahead = min(timedelta(microseconds=delay), FURTHEST)
            task["schedule_time"] = datetime.fromtimestamp(self._now(), UTC) + ahead
        return tasks_v2.CreateTaskRequest(parent=self._queue, task=tasks_v2.Task(**task))


def _level(outcome: TaskOutcome) -> int:
    if outcome in _OPERATOR:
        return logging.ERROR
    return logging.INFO if outcome in TAKEN else logging.WARNING


def _loopback(endpoint: str) -> bool:
    host, _, port = endpoint.rpartition(":")
    if not port.isdecimal():
        return False
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
