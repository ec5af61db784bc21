"""Keys of one delivery: stable, apart from each other, and silent about what they name."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listen_finalization.domain.effect_key import delivery_id, idempotency_key

JOB = "0191b2c4-7f00-8abc-9def-0123456789ab"
KEYS = [idempotency_key, delivery_id]
Key = Callable[[str, str], str]
parts = st.text(
    st.characters(exclude_categories=["Cs"]),
    min_size=1,
    max_size=64,
)


def test_keys_never_change_between_versions_of_the_code() -> None:
    assert idempotency_key(JOB, "crm") == "eff_KHxzEl_iqJvaE122Jt7IaJbGcr3ZzfleHnfIqx2GD2s"
    assert delivery_id(JOB, "crm") == "msg_3-xMrKvZXdVY9qkw7tRAcyD-MnFgvpIl6duxZnS72q0"


@pytest.mark.parametrize("key", KEYS)
@given(job=parts, destination=parts)
def test_a_key_is_the_same_in_every_attempt_and_fits_a_header(
    key: Key, job: str, destination: str
) -> None:
    made = key(job, destination)

    assert made == key(job, destination)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", made)


@pytest.mark.parametrize("key", KEYS)
@given(one=st.tuples(parts, parts), other=st.tuples(parts, parts))
def test_two_deliveries_never_share_a_key(
    key: Key, one: tuple[str, str], other: tuple[str, str]
) -> None:
    assert (key(*one) == key(*other)) == (one == other)


@pytest.mark.parametrize("key", KEYS)
def test_moving_the_border_between_the_parts_makes_another_key(key: Key) -> None:
    assert len({key("ab", "c"), key("a", "bc"), key("abc", ""), key("", "abc")}) == 4


def test_key_and_delivery_id_cannot_be_told_from_each_other() -> None:
    assert idempotency_key(JOB, "crm")[4:] != delivery_id(JOB, "crm")[4:]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_reveals_neither_part(key: Key) -> None:
    made = key("canary-job", "canary-destination")

    for part in ("canary-job", "canary-destination"):
        assert part not in made
        assert quote(part) not in made
        assert base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") not in made
