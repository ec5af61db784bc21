"""The pure rules: back-off, exhaustion, success, the bucket, the schedule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listen_finalization.domain.job import Instant, seconds
from listen_finalization.testing.cloud_tasks.bucket import Bucket
from listen_finalization.testing.cloud_tasks.schedule import Schedule
from listen_finalization.testing.cloud_tasks.values import Answer, RateLimits, RetryConfig

AT = Instant(1_000_000_000)


def test_the_wait_doubles_then_grows_linearly_then_stays_as_in_the_reference() -> None:
    config = RetryConfig(least_backoff=seconds(10), most_backoff=seconds(300), max_doublings=3)
    waits = [config.delay(failures) for failures in range(1, 9)]
    assert waits == [seconds(one) for one in (10, 20, 40, 80, 160, 240, 300, 300)]


@given(
    least=st.integers(1, seconds(60)),
    doublings=st.integers(0, 100),
    failures=st.integers(1, 10_000),
)
def test_no_wait_is_shorter_than_the_one_before_or_out_of_bounds(
    least: int, doublings: int, failures: int
) -> None:
    config = RetryConfig(least_backoff=least, most_backoff=seconds(3600), max_doublings=doublings)
    assert least <= config.delay(failures) <= config.delay(failures + 1) <= seconds(3600)


@pytest.mark.parametrize(
    ("attempts", "duration", "made", "elapsed", "over"),
    [
        (3, 0, 2, 10**9, False),
        (3, 0, 3, 0, True),
        (-1, 0, 10**6, 10**12, False),
        (-1, 60, 1, 59, False),
        (-1, 60, 1, 60, True),
        (3, 60, 3, 59, False),
        (3, 60, 2, 60, False),
        (3, 60, 3, 60, True),
    ],
)
def test_of_two_limits_both_must_be_reached(
    attempts: int, duration: int, made: int, elapsed: int, over: bool
) -> None:
    config = RetryConfig(max_attempts=attempts, max_duration=duration)
    assert config.exhausted(made, elapsed) is over


@pytest.mark.parametrize(
    ("status", "success"),
    [(199, False), (200, True), (204, True), (299, True), (300, False), (302, False), (500, False)],
)
def test_any_2xx_is_success_and_nothing_else_is(status: int, success: bool) -> None:
    assert Answer(status).succeeded is success


def test_no_answer_is_no_success() -> None:
    assert Answer().succeeded is False


@given(
    rate=st.floats(0.1, 500),
    steps=st.lists(st.integers(0, seconds(2)), min_size=1, max_size=60),
)
def test_a_bucket_never_gives_more_than_burst_and_rate(rate: float, steps: list[int]) -> None:
    burst = RateLimits(rate).burst
    bucket, now, taken = Bucket(rate, burst, AT), AT, 0
    for step in steps:
        now = Instant(now + step)
        while bucket.take(now):
            taken += 1
        assert taken <= burst + rate * (now - AT) / 1_000_000 + 0.01


def test_a_bucket_says_when_the_next_token_is_there() -> None:
    bucket = Bucket(2.0, 1, AT)
    assert bucket.next_token(AT) == AT
    assert bucket.take(AT)
    due = bucket.next_token(AT)
    assert seconds(0.5) <= due - AT <= seconds(0.5) + 2
    assert not bucket.take(Instant(AT + seconds(0.49)))
    assert bucket.take(due)


def test_a_clock_that_is_set_back_fills_no_bucket() -> None:
    bucket = Bucket(1.0, 1, AT)
    assert bucket.take(AT)
    assert not bucket.take(Instant(AT - seconds(10)))
    assert bucket.take(Instant(AT - seconds(9)))


def test_tenths_of_a_token_make_a_whole_one() -> None:
    bucket = Bucket(10.0, 1, AT)
    assert bucket.take(AT)
    taken = [bucket.take(Instant(AT + step * seconds(0.01))) for step in range(1, 11)]
    assert taken == [False] * 9 + [True]


def test_a_schedule_gives_what_waited_longest_and_each_name_once() -> None:
    schedule = Schedule()
    for name, ready in (("late", 30), ("first", 10), ("second", 20), ("first", 25)):
        schedule.put(name, Instant(ready))
    schedule.drop("late")
    assert schedule.first() == 20
    assert [schedule.take(Instant(40)) for _ in range(3)] == ["second", "first", None]


def test_a_schedule_out_of_order_gives_what_waited_shortest_of_the_ready() -> None:
    schedule = Schedule()
    for name, ready in (("a", 10), ("b", 20), ("c", 30)):
        schedule.put(name, Instant(ready))
    assert [schedule.take(Instant(20), newest=True) for _ in range(3)] == ["b", "a", None]
