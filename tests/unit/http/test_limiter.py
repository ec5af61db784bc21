"""The rate limiter against the bucket that it stands for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listen_finalization.http.limiter import RateLimiter


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_full_bucket_then_one_at_a_time() -> None:
    clock = Clock()
    limiter = RateLimiter(60, monotonic=clock)
    assert [limiter.take("ada") for _ in range(60)] == [0.0] * 60
    assert limiter.take("ada") == pytest.approx(1.0)
    assert limiter.take("grace") == 0.0
    clock.now += 1.0
    assert limiter.take("ada") == 0.0
    assert limiter.take("ada") > 0


@given(
    per_minute=st.integers(1, 120),
    pauses=st.lists(st.floats(0, 90), min_size=1, max_size=60),
)
def test_it_is_a_token_bucket(per_minute: int, pauses: list[float]) -> None:
    clock = Clock()
    limiter = RateLimiter(per_minute, monotonic=clock)
    tokens, rate = float(per_minute), per_minute / 60
    for pause in pauses:
        clock.now += pause
        tokens = min(per_minute, tokens + pause * rate)
        wait = limiter.take("ada")
        if wait == 0:
            assert tokens > 1 - 1e-5
            tokens -= 1
        else:
            assert tokens < 1 + 1e-5
            assert wait == pytest.approx((1 - tokens) / rate, abs=1e-4)


def test_the_memory_is_bounded_and_forgets_who_was_quiet_longest() -> None:
    limiter = RateLimiter(1, max_users=3, monotonic=lambda: 0.0)
    for uid in ("a", "b", "c", "a", "d"):
        limiter.take(uid)
    assert len(limiter) == 3
    assert limiter.take("a") > 0
    assert limiter.take("b") == 0.0


@pytest.mark.parametrize(("rate", "users"), [(0, 1), (-1, 1), (1, 0)])
def test_numbers_that_cannot_work_are_refused(rate: int, users: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        RateLimiter(rate, max_users=users)
