"""The numbers that decisions need; all durations are microseconds."""

from __future__ import annotations

from dataclasses import dataclass

from listen_finalization.domain.job import seconds


@dataclass(frozen=True, slots=True)
class Policy:
    """Budget, lease and back-off of one deployment.

    `handover` is how long a hand-over may take before the reconciler makes another (contract 12:
    the stale seconds; 0 where the outbox itself is the queue). `retry_floor` keeps the reconciler
    away while a queue retries by itself. The defaults are those of contract 5 for Cloud Tasks.
    """

    lease: int = seconds(60)
    max_attempts: int = 5
    handover: int = seconds(300)
    handover_limit: int = seconds(4 * 3600)
    retry_floor: int = seconds(300)
    backoff: int = seconds(10)
    backoff_limit: int = seconds(600)
    session_limit: int = seconds(120)
    environment_release_limit: int = 20
    resend_limit: int = seconds(60)
    abandon_after: int | None = None
    retention: int = seconds(30 * 86_400)

    def handover_delay(self, handovers: int) -> int:
        """Return how long the given hand-over since the last claim may take."""
        return min(self.handover << min(max(handovers, 1) - 1, 32), self.handover_limit)

    def backoff_delay(self, attempt: int, jitter: int) -> int:
        """Return the wait before the attempt after `attempt`, up to a quarter longer by jitter."""
        wait = min(self.backoff << min(max(attempt, 1) - 1, 32), self.backoff_limit)
        return max(wait + wait * jitter // 4_000, self.retry_floor)
