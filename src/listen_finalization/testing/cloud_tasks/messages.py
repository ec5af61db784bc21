"""Between the messages of `google.cloud.tasks.v2` and the engine's values; validation is here."""

from __future__ import annotations

import math
import re
from typing import Any
from urllib.parse import urlsplit

from google.cloud import tasks_v2
from google.protobuf.field_mask_pb2 import FieldMask  # type: ignore[import-untyped]

from listen_finalization.domain.job import SECOND, Instant
from listen_finalization.testing.cloud_tasks import limits
from listen_finalization.testing.cloud_tasks.refusals import CallRefusedError, Code, invalid
from listen_finalization.testing.cloud_tasks.values import (
    Attempt,
    Ending,
    Queue,
    QueueState,
    RateLimits,
    RetryConfig,
    Target,
    Task,
)

Message = Any
"""A message of protobuf's own classes, which have no types of their own."""

QueueMessage: Any = tasks_v2.Queue.pb()
TaskMessage: Any = tasks_v2.Task.pb()

_VIEWS = {"BASIC": 1, "FULL": 2}
_HttpMethod: Any = tasks_v2.HttpMethod
_METHODS = {method.value: method.name for method in _HttpMethod} | {0: "POST"}
_STATES = {QueueState.RUNNING: 1, QueueState.PAUSED: 2}
_CODES = {Ending.DEADLINE_EXCEEDED: 4, Ending.UNREACHABLE: 14, Ending.HTTP_STATUS: 2}
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")


def queue_from(message: Message) -> Queue:
    """Return the queue that a message asks for, with production's defaults for what is unset."""
    for field in ("http_target", "app_engine_routing_override"):
        if message.HasField(field):
            raise CallRefusedError(Code.UNIMPLEMENTED, f"queue.{field} is not served here")
    return Queue(message.name, _rates(message.rate_limits), _retry(message.retry_config))


def merged(stored: Queue, message: Message, mask: FieldMask) -> Queue:
    """Return the stored queue with the fields of `message` that the mask names; empty: all."""
    if not mask.paths:
        return queue_from(message)
    if not mask.IsValidForDescriptor(QueueMessage.DESCRIPTOR):
        raise invalid("update_mask names a field that a queue does not have")
    target = queue_message(stored)
    mask.MergeMessage(message, target, True)
    return queue_from(target)


def queue_message(queue: Queue) -> Message:
    """Return the message of a queue."""
    message = QueueMessage(name=queue.name, state=_STATES[queue.state])
    message.rate_limits.max_dispatches_per_second = queue.rates.rate
    message.rate_limits.max_burst_size = queue.rates.burst
    message.rate_limits.max_concurrent_dispatches = queue.rates.concurrent
    _put_retry(message.retry_config, queue.retry)
    if queue.purged is not None:
        _put_time(message.purge_time, queue.purged)
    return message


def task_from(message: Message, name: str, now: Instant) -> Task:
    """Return the task that a message asks for."""
    if message.ByteSize() > limits.MAX_TASK_BYTES:
        raise invalid(f"the task is larger than {limits.MAX_TASK_BYTES} bytes")
    schedule = now
    if message.HasField("schedule_time"):
        schedule = max(now, _instant(message.schedule_time))
    if schedule - now > limits.MAX_AHEAD:
        raise invalid("schedule_time is more than 30 days ahead")
    return Task(
        name=name,
        target=_target(message),
        created=now,
        schedule=schedule,
        ready=schedule,
        deadline=_deadline(message),
        retry=_retry(message.retry_config) if message.HasField("retry_config") else None,
    )


def task_message(task: Task, view: int = _VIEWS["BASIC"]) -> Message:
    """Return the message of a task; the body is in the FULL view alone."""
    full = view == _VIEWS["FULL"]
    message = TaskMessage(name=task.name, view=_VIEWS["FULL" if full else "BASIC"])
    _put_target(message.http_request, task.target, full=full)
    _put_time(message.schedule_time, task.schedule)
    message.create_time.seconds = task.created // SECOND
    _put_duration(message.dispatch_deadline, task.deadline)
    message.dispatch_count, message.response_count = task.dispatches, task.responses
    if task.first is not None:
        _put_time(message.first_attempt.dispatch_time, task.first.dispatched)
    if task.last is not None:
        _put_attempt(message.last_attempt, task.last)
    if task.retry is not None:
        _put_retry(message.retry_config, task.retry)
    return message


def _rates(message: Message) -> RateLimits:
    rate = message.max_dispatches_per_second or limits.DEFAULT_RATE
    concurrent = message.max_concurrent_dispatches or limits.DEFAULT_CONCURRENT
    if not 0 < rate <= limits.MAX_RATE or math.isnan(rate):
        raise invalid("rate_limits.max_dispatches_per_second must be above 0 and at most 500")
    if not 0 < concurrent <= limits.MAX_CONCURRENT:
        raise invalid("rate_limits.max_concurrent_dispatches must be 1 to 5000")
    return RateLimits(rate, concurrent)


def _retry(message: Message) -> RetryConfig:
    least = _micros(message.min_backoff) or limits.DEFAULT_LEAST_BACKOFF
    most = _micros(message.max_backoff) or max(limits.DEFAULT_MOST_BACKOFF, least)
    config = RetryConfig(
        max_attempts=message.max_attempts or limits.DEFAULT_ATTEMPTS,
        max_duration=_micros(message.max_retry_duration) // SECOND * SECOND,
        least_backoff=least,
        most_backoff=most,
        max_doublings=message.max_doublings or limits.DEFAULT_DOUBLINGS,
    )
    if config.max_attempts < -1:
        raise invalid("retry_config.max_attempts must be -1 or more")
    if min(config.max_duration, least, config.max_doublings) < 0:
        raise invalid("retry_config must not be negative")
    if least > most:
        raise invalid("retry_config.min_backoff must be at most max_backoff")
    return config


def _target(message: Message) -> Target:
    if message.HasField("app_engine_http_request"):
        raise CallRefusedError(Code.UNIMPLEMENTED, "App Engine tasks are not served here")
    if not message.HasField("http_request"):
        raise invalid("task.http_request is required")
    request = message.http_request
    if request.HasField("oauth_token"):
        raise CallRefusedError(Code.UNIMPLEMENTED, "oauth_token is not served here")
    method = _METHODS.get(request.http_method)
    if method is None:
        raise invalid("http_request.http_method is unknown")
    if request.body and method not in {"POST", "PUT", "PATCH"}:
        raise invalid("a body needs the method POST, PUT or PATCH")
    token = request.oidc_token if request.HasField("oidc_token") else None
    if token is not None and "@" not in token.service_account_email:
        raise invalid("oidc_token.service_account_email must be the address of an account")
    return Target(
        url=_url(request.url),
        method=method,
        headers=_headers(request.headers),
        body=request.body,
        email=token.service_account_email if token is not None else None,
        audience=token.audience if token is not None else "",
    )


def _url(url: str) -> str:
    if not url.startswith(("http://", "https://")) or len(url) > limits.MAX_URL:
        raise invalid("http_request.url must begin with http:// or https://, up to 2083 characters")
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    if not host:
        raise invalid("http_request.url has no host")
    return url


def _headers(headers: Message) -> tuple[tuple[str, str], ...]:
    found = tuple(headers.items())
    if sum(len(name) + len(value) for name, value in found) >= limits.MAX_HEADER_BYTES:
        raise invalid("http_request.headers must be less than 80 KB")
    if not all(_HEADER.fullmatch(name) and _VALUE.fullmatch(value) for name, value in found):
        raise invalid("http_request.headers has a malformed header")
    return found


def _deadline(message: Message) -> int:
    if not message.HasField("dispatch_deadline"):
        return limits.DEFAULT_DEADLINE
    deadline = _micros(message.dispatch_deadline) // 1_000 * 1_000
    if not limits.LEAST_DEADLINE <= deadline <= limits.MOST_DEADLINE:
        raise invalid("task.dispatch_deadline must be 15 s to 30 min")
    return deadline


def _put_target(message: Message, target: Target, *, full: bool) -> None:
    message.url = target.url
    message.http_method = _HttpMethod[target.method].value
    message.headers.update(target.headers)
    if full:
        message.body = target.body
    if target.email is not None:
        message.oidc_token.service_account_email = target.email
        message.oidc_token.audience = target.audience or target.url


def _put_attempt(message: Message, attempt: Attempt) -> None:
    _put_time(message.schedule_time, attempt.scheduled)
    _put_time(message.dispatch_time, attempt.dispatched)
    if attempt.answered is not None:
        _put_time(message.response_time, attempt.answered)
    if attempt.ending is not None:
        message.response_status.code = _CODES[attempt.ending]
        message.response_status.message = (
            attempt.ending if attempt.status is None else f"HTTP status code {attempt.status}"
        )


def _put_retry(message: Message, retry: RetryConfig) -> None:
    message.max_attempts, message.max_doublings = retry.max_attempts, retry.max_doublings
    _put_duration(message.min_backoff, retry.least_backoff)
    _put_duration(message.max_backoff, retry.most_backoff)
    if retry.max_duration:
        _put_duration(message.max_retry_duration, retry.max_duration)


def _put_time(message: Message, instant: Instant) -> None:
    message.seconds, message.nanos = instant // SECOND, instant % SECOND * 1_000


def _put_duration(message: Message, micros: int) -> None:
    message.seconds, message.nanos = micros // SECOND, micros % SECOND * 1_000


def _instant(message: Message) -> Instant:
    return Instant(_micros(message))


def _micros(message: Message) -> int:
    return int(message.seconds) * SECOND + int(message.nanos) // 1_000
