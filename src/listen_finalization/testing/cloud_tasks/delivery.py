"""One delivery over HTTP, with the headers that production sends."""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from listen_finalization.domain.job import SECOND
from listen_finalization.testing.cloud_tasks import names
from listen_finalization.testing.cloud_tasks.identity import TaskIdentity
from listen_finalization.testing.cloud_tasks.values import Answer, Attempt, Dispatch, Ending

USER_AGENT = "Google-Cloud-Tasks"
MAX_ANSWER = 1024 * 1024
"""Bytes of an answer that are read before the connection is closed; nothing of it is kept."""

_OURS = ("x-cloudtasks-", "x-google-", "x-appengine-")
_COMPUTED = frozenset({"host", "content-length", "user-agent", "connection", "transfer-encoding"})

REASONS: Mapping[Ending, str] = {
    Ending.HTTP_STATUS: "HTTP status",
    Ending.DEADLINE_EXCEEDED: "DEADLINE_EXCEEDED",
    Ending.UNREACHABLE: "UNAVAILABLE",
}
"""What X-CloudTasks-TaskRetryReason says; its words are not documented."""


class Sender:
    """Sends attempts; each has a connection of its own, and redirects are not followed."""

    def __init__(self, identity: TaskIdentity) -> None:
        self._identity = identity
        # A transport alone has no redirects, cookies, proxies, time limits or log lines.
        self._transport = httpx.AsyncHTTPTransport(
            trust_env=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        )

    async def send(self, dispatch: Dispatch) -> Answer:
        """Send one attempt and wait for the whole answer; the caller bounds the time."""
        target = dispatch.task.target
        try:
            headers = self._headers(dispatch)
            request = httpx.Request(
                target.method, target.url, headers=headers, content=target.body or None
            )
            status = await self._exchange(request)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError):
            return Answer(ending=Ending.UNREACHABLE)
        return Answer(status, None if 200 <= status < 300 else Ending.HTTP_STATUS)

    async def close(self) -> None:
        """Close what is open."""
        await self._transport.aclose()

    async def _exchange(self, request: httpx.Request) -> int:
        answer = await self._transport.handle_async_request(request)
        try:
            read = 0
            async for chunk in answer.aiter_raw():
                read += len(chunk)
                if read > MAX_ANSWER:
                    break
        finally:
            await answer.aclose()
        return answer.status_code

    def _headers(self, dispatch: Dispatch) -> list[tuple[str, str]]:
        target = dispatch.task.target
        own = [(name, value) for name, value in target.headers if not _replaced(name)]
        if target.email is not None:
            own = [(name, value) for name, value in own if name.lower() != "authorization"]
            token = self._identity.token(target.email, target.audience or target.url)
            own.append(("Authorization", f"Bearer {token}"))
        return [*own, ("User-Agent", USER_AGENT), *service_headers(dispatch)]


def service_headers(dispatch: Dispatch) -> list[tuple[str, str]]:
    """Return the X-CloudTasks headers of an attempt.

    TaskExecutionCount counts the answers that the handler gave; the page "Create HTTP target
    tasks" leaves 5xx out, the conformance probe that this server is held to counts them.
    """
    task = dispatch.task
    whole, part = divmod(task.schedule, SECOND)
    told = [
        ("X-CloudTasks-QueueName", names.short(dispatch.queue)),
        ("X-CloudTasks-TaskName", names.short(task.name)),
        ("X-CloudTasks-TaskRetryCount", str(task.dispatches)),
        ("X-CloudTasks-TaskExecutionCount", str(task.responses)),
        ("X-CloudTasks-TaskETA", f"{whole}.{part:06d}"),
    ]
    return told + (_before(task.last) if task.last is not None else [])


def _before(attempt: Attempt) -> list[tuple[str, str]]:
    told = []
    if attempt.status is not None:
        told.append(("X-CloudTasks-TaskPreviousResponse", str(attempt.status)))
    if attempt.ending is not None:
        told.append(("X-CloudTasks-TaskRetryReason", _reason(attempt)))
    return told


def _reason(attempt: Attempt) -> str:
    word = REASONS[attempt.ending or Ending.UNREACHABLE]
    return word if attempt.status is None else f"{word} {attempt.status}"


def _replaced(name: str) -> bool:
    lower = name.lower()
    return lower in _COMPUTED or lower.startswith(_OURS)
