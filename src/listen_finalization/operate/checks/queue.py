"""The queue: that it is there, runs, and has the numbers of the deploy files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from listen_finalization.operate import remedies
from listen_finalization.operate.checks.check import Case, Check
from listen_finalization.operate.deployed import DeployedQueue
from listen_finalization.operate.facts import QueueFacts
from listen_finalization.operate.findings import Code, Said, failed, fine, warned

Row = Check[QueueFacts]
Judge = Callable[[Case, QueueFacts], Said]


def _row(code: Code, expected: Callable[[DeployedQueue], str], judge: Judge, **more: Any) -> Row:
    def wanted(case: Case) -> str | None:
        return None if case.deployed.queue is None else expected(case.deployed.queue)

    return Check(
        code=code,
        sight=lambda seen: seen.queue,
        expected=wanted,
        judge=judge,
        role="roles/cloudtasks.viewer",
        api="cloudtasks.googleapis.com",
        **more,
    )


def _same(
    expected: Callable[[DeployedQueue], str], found: Callable[[QueueFacts], str]
) -> tuple[Callable[[DeployedQueue], str], Judge]:
    """Return both halves of a check that the queue's own words are those of the files."""

    def judge(case: Case, queue: QueueFacts) -> Said:
        wanted = case.deployed.queue and expected(case.deployed.queue)
        told = found(queue)
        return fine(told) if told == wanted else failed(told, remedies.apply(case.deployed))

    return expected, judge


def _running(case: Case, queue: QueueFacts) -> Said:
    if queue.running:
        return fine("running")
    return warned("paused or disabled", remedies.resume_queue(case.deployed))


def _backoff(least: float, most: float, doublings: int, retry: float) -> str:
    limit = "no limit in time" if retry == 0 else f"at most {retry:g} s"
    return f"{least:g} s to {most:g} s, {doublings} doublings, {limit}"


QUEUE_CHECKS: tuple[Row, ...] = (
    _row(
        Code.QUEUE_FOUND,
        lambda queue: f"a queue {queue.name}",
        lambda _case, _queue: fine("there"),
        missing=lambda case: failed("none", remedies.apply(case.deployed)),
    ),
    _row(Code.QUEUE_RUNNING, lambda _: "running", _running),
    _row(
        Code.QUEUE_ATTEMPTS,
        *_same(lambda queue: str(queue.max_attempts), lambda found: str(found.max_attempts)),
    ),
    _row(
        Code.QUEUE_BACKOFF,
        *_same(
            lambda queue: _backoff(
                queue.min_backoff_seconds, queue.max_backoff_seconds, queue.max_doublings, 0
            ),
            lambda found: _backoff(
                found.min_backoff, found.max_backoff, found.max_doublings, found.retry_seconds
            ),
        ),
    ),
    _row(
        Code.QUEUE_CONCURRENCY,
        *_same(
            lambda queue: f"{queue.max_concurrent_dispatches} at once",
            lambda found: f"{found.max_concurrent} at once",
        ),
    ),
    _row(
        Code.QUEUE_RATE,
        *_same(
            lambda queue: f"{queue.max_dispatches_per_second} a second",
            lambda found: f"{found.max_rate:g} a second",
        ),
    ),
)
