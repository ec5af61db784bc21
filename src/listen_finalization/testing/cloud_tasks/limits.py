"""The figures of Cloud Tasks that the queue engine keeps, each with where it is documented.

"Reference" is that of `google.cloud.tasks.v2`, "quotas" the page "Quotas and limits". Durations
are microseconds.
"""

from __future__ import annotations

from listen_finalization.domain.job import seconds

TASK_NAME_HELD = seconds(24 * 3600)
"""How long the name of a task that ended stays taken: up to 24 h (reference, CreateTaskRequest)."""

QUEUE_NAME_HELD = seconds(3 * 86_400)
"""How long the name of a deleted queue stays taken: up to 3 days (reference, DeleteQueue)."""

MAX_AHEAD = seconds(30 * 86_400)
"""How far ahead a task may be scheduled (quotas)."""

RETENTION = seconds(31 * 86_400)
"""How old a task may become; then it is deleted (quotas; reference, UpdateQueue)."""

DEFAULT_DEADLINE = seconds(600)
LEAST_DEADLINE, MOST_DEADLINE = seconds(15), seconds(1800)
"""Of one attempt at an HTTP target (reference, Task.dispatch_deadline)."""

MAX_TASK_BYTES = 1024 * 1024
"""Bytes of a task (quotas)."""

MAX_URL = 2083
"""Characters of a URL (reference, HttpRequest.url)."""

MAX_HEADER_BYTES = 80 * 1024
"""Bytes of all headers together, exclusive (reference, HttpRequest.headers)."""

MAX_RATE = 500.0
"""Dispatches a second (reference, RateLimits)."""

MAX_CONCURRENT = 5_000
"""Dispatches at once (reference, RateLimits)."""

TASK_PAGE, QUEUE_PAGE = 1_000, 9_800
"""Entries of one page (reference, ListTasksRequest and ListQueuesRequest)."""

DEFAULT_RATE, DEFAULT_CONCURRENT = 500.0, 1_000
DEFAULT_ATTEMPTS, DEFAULT_DOUBLINGS = 100, 16
DEFAULT_LEAST_BACKOFF, DEFAULT_MOST_BACKOFF = seconds(0.1), seconds(3600)
"""What production shows of a queue that was created with nothing set."""
