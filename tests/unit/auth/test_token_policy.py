"""A policy that would check nothing, or could never match, is not built."""

from __future__ import annotations

from typing import Any

import pytest

from listen_finalization.auth.policy import PolicyError, PolicyName, TokenPolicy

ISSUERS = frozenset({"https://accounts.google.com"})
BLANK: list[Any] = ["", " ", "\t\n", None, " canary", "canary\n", ["canary"], 7]


@pytest.mark.parametrize("value", BLANK)
def test_a_blank_audience_is_refused_by_name_and_never_by_value(value: Any) -> None:
    with pytest.raises(PolicyError, match="tasks token policy: audience") as fault:
        TokenPolicy.google(PolicyName.TASKS, value, email="canary@example.com")
    assert "canary" not in str(fault.value)


@pytest.mark.parametrize("value", BLANK)
def test_a_blank_email_is_refused_by_name_and_never_by_value(value: Any) -> None:
    with pytest.raises(PolicyError, match="pusher token policy: email") as fault:
        TokenPolicy.google(PolicyName.PUSHER, "canary", email=value)
    assert "canary" not in str(fault.value)


@pytest.mark.parametrize("value", BLANK)
def test_a_blank_project_is_refused(value: Any) -> None:
    for build in (TokenPolicy.firebase, TokenPolicy.local_users):
        with pytest.raises(PolicyError, match="users token policy: audience") as fault:
            build(value)
        assert "canary" not in str(fault.value)


@pytest.mark.parametrize("issuers", [frozenset(), "https://accounts.google.com", None, [""]])
def test_issuers_are_a_set_that_is_not_empty(issuers: Any) -> None:
    with pytest.raises(PolicyError, match="issuers"):
        TokenPolicy(PolicyName.TASKS, "audience", issuers=issuers, email="a@example.com")


def test_a_blank_issuer_is_refused() -> None:
    with pytest.raises(PolicyError, match="issuer must be"):
        TokenPolicy(PolicyName.TASKS, "audience", issuers=frozenset({""}), email="a@example.com")


def test_a_policy_shows_its_name_alone() -> None:
    policy = TokenPolicy(
        PolicyName.TASKS, "canary-audience", issuers=ISSUERS, email="canary@example.com"
    )
    assert repr(policy) == "TokenPolicy(name=<PolicyName.TASKS: 'tasks'>)"


def test_a_service_policy_is_not_built_without_its_email() -> None:
    with pytest.raises(PolicyError, match="tasks token policy: email"):
        TokenPolicy(PolicyName.TASKS, "audience", issuers=ISSUERS)
    with pytest.raises(PolicyError, match="users token policy: email"):
        TokenPolicy(PolicyName.USERS, "project", issuers=ISSUERS, email="a@example.com")
