"""`explain` has an answer for every job that can be built, and the right one for each case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from listen_finalization.domain.codes import (
    EffectCode,
    EffectState,
    FailureCode,
    Outcome,
    Status,
    Step,
)
from listen_finalization.domain.explain import Facts, Mover, Next, Presence, explain
from listen_finalization.domain.job import Effect, Instant, Job
from listen_finalization.domain.reasons import ADVICE, SENTENCES, Reason

NOW = Instant(1_000_000_000)
LATER = Instant(NOW + 5_000_000)
EARLIER = Instant(NOW - 5_000_000)

_instants = st.integers(-(2**62), 2**62).map(Instant)
_effects = st.builds(
    Effect,
    st.sampled_from(Step),
    st.sampled_from(EffectState),
    st.none() | st.sampled_from(["crm", "mail"]),
    st.none() | st.sampled_from(EffectCode),
)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """Draw any job that its constructor admits."""
    status = draw(st.sampled_from(Status))
    leased, terminal = status is Status.LEASED, status.terminal
    blocked = status is Status.BLOCKED_BYOK
    epoch = draw(st.integers(1 if leased else 0, 50))
    some = {True: _instants, False: st.none()}
    return Job(
        "id",
        draw(st.text(max_size=5)),
        draw(st.text(max_size=5)),
        draw(st.integers(1, 9)),
        status,
        requires_byok=blocked or draw(st.booleans()),
        force_process=draw(st.booleans()),
        created_at=draw(_instants),
        updated_at=draw(_instants),
        dispatched_at=draw(_instants),
        dispatch_generation=draw(st.integers(1, 99)),
        lease_epoch=epoch,
        claim_id="c" if leased else draw(st.none() | st.just("c")),
        leased_at=draw(some[leased]),
        lease_expires_at=draw(some[leased]),
        content_version=1 if leased else None,
        attempt_count=draw(st.integers(0, epoch)),
        handovers=draw(st.integers(0, 9)),
        releases=draw(st.integers(0, 30)),
        replay_count=draw(st.integers(0, 3)),
        failure_code=draw(st.none() | st.sampled_from(FailureCode)),
        outcome=draw(st.sampled_from(Outcome)) if terminal else None,
        completed_at=draw(some[status is Status.COMPLETED]),
        reconcile_after_at=draw(some[not (terminal or blocked)]),
        effects=tuple(draw(st.lists(_effects, max_size=6))),
    )


facts_of = st.builds(
    Facts, jobs(), _instants, st.integers(1, 100), st.sampled_from(Presence), st.booleans()
)


@settings(max_examples=400, deadline=None)
@given(facts_of)
def test_every_job_is_explained_with_a_reason_a_mover_and_what_to_type(facts: Facts) -> None:
    found = explain(facts)
    assert found.reasons
    assert found.movers
    assert (found.next is Next.NOTHING) <= (facts.job.status is Status.COMPLETED)
    for because in found.reasons:
        text = because.sentence(lambda at: "THEN")
        assert text.endswith(".")
        assert "None" not in text
        assert "{" not in text


@settings(max_examples=200, deadline=None)
@given(facts_of)
def test_a_platform_key_never_runs_a_job_that_needs_the_users(facts: Facts) -> None:
    if facts.job.status is Status.BLOCKED_BYOK:
        found = explain(facts)
        assert found.movers == (Mover.USER,)
        assert found.next is Next.HISTORY


@settings(max_examples=200, deadline=None)
@given(facts_of)
def test_nobody_is_sent_to_a_dispatcher_that_does_not_run(facts: Facts) -> None:
    found = explain(replace(facts, dispatcher=Presence.ABSENT))
    assert Mover.DISPATCHER not in found.movers


def test_every_reason_has_a_sentence_and_every_failure_code_an_advice() -> None:
    assert set(SENTENCES) == set(Reason)
    assert set(ADVICE) == set(FailureCode)


BASE: dict[str, Any] = {
    "job_id": "id",
    "uid": "u",
    "conversation_id": "c",
    "finalization_revision": 1,
    "requires_byok": False,
    "force_process": False,
    "created_at": EARLIER,
    "updated_at": EARLIER,
    "dispatched_at": EARLIER,
}


def queued(due: Instant, **changed: Any) -> Job:
    return Job(**{**BASE, "status": Status.QUEUED, "reconcile_after_at": due, **changed})


def leased(end: Instant, **changed: Any) -> Job:
    owned = {"lease_epoch": 1, "attempt_count": 1, "claim_id": "c", "content_version": 1}
    times = {"leased_at": EARLIER, "lease_expires_at": end, "reconcile_after_at": end}
    return Job(**{**BASE, "status": Status.LEASED, **owned, **times, **changed})


def ended(status: Status, outcome: Outcome, **changed: Any) -> Job:
    at = EARLIER if status is Status.COMPLETED else None
    return Job(**{**BASE, "status": status, "outcome": outcome, "completed_at": at, **changed})


BLOCKED = Job(**{**BASE, "status": Status.BLOCKED_BYOK, "requires_byok": True})
RUNS, ABSENT = Presence.RUNS, Presence.ABSENT
DROPPED = Effect(Step.FANOUT, EffectState.DROPPED, "crm", EffectCode.HTTP_4XX)
DISCARDED = Effect(Step.ENRICH, EffectState.DONE, None, EffectCode.DISCARDED)
TRIED = {"failure_code": FailureCode.PROVIDER_ERROR, "lease_epoch": 5, "attempt_count": 5}


@pytest.mark.parametrize(
    ("job", "presence", "dead", "reasons", "movers", "following"),
    [
        (queued(EARLIER), RUNS, False, [Reason.DUE], [Mover.DISPATCHER], Next.RUNNING),
        (
            *(queued(EARLIER), ABSENT, False),
            *([Reason.NOBODY_DISPATCHES, Reason.DUE], [Mover.OPERATOR], Next.START),
        ),
        (queued(LATER), RUNS, False, [Reason.SCHEDULED], [Mover.DISPATCHER], Next.WATCH),
        (
            *(queued(LATER, failure_code=FailureCode.SHUTDOWN, releases=1), RUNS, False),
            *([Reason.BACKING_OFF, Reason.GIVEN_BACK], [Mover.DISPATCHER], Next.WATCH),
        ),
        (
            *(queued(LATER, **TRIED), RUNS, False),
            *([Reason.BACKING_OFF, Reason.BUDGET_SPENT], [Mover.DISPATCHER], Next.WATCH),
        ),
        (
            *(queued(LATER, failure_code=FailureCode.ENVIRONMENT_PROVIDER), RUNS, False),
            *([Reason.ENVIRONMENT_WAIT], [Mover.DISPATCHER], Next.WATCH),
        ),
        (
            *(queued(LATER, requires_byok=True), RUNS, False),
            *([Reason.KEYS_PRESENTED], [Mover.USER, Mover.DISPATCHER], Next.WATCH),
        ),
        (
            *(queued(EARLIER, requires_byok=True), ABSENT, False),
            *([Reason.NOBODY_DISPATCHES, Reason.SESSION_OVER],),
            *([Mover.OPERATOR, Mover.USER], Next.START),
        ),
        (
            *(leased(LATER), RUNS, False),
            *([Reason.RUNNING, Reason.ATTEMPTS_USED], [Mover.OWNER], Next.WATCH),
        ),
        (
            *(leased(LATER, **TRIED), ABSENT, False),
            *([Reason.RUNNING, Reason.LAST_ATTEMPT], [Mover.OWNER], Next.WATCH),
        ),
        (
            *(leased(EARLIER), RUNS, False, [Reason.LEASE_EXPIRED, Reason.ATTEMPTS_USED]),
            *([Mover.OWNER, Mover.DISPATCHER], Next.WATCH),
        ),
        (
            *(leased(LATER), RUNS, True),
            *([Reason.OWNER_DEAD, Reason.ATTEMPTS_USED], [Mover.DISPATCHER], Next.WATCH),
        ),
        (
            *(leased(LATER), ABSENT, True),
            *([Reason.NOBODY_DISPATCHES, Reason.OWNER_DEAD, Reason.ATTEMPTS_USED],),
            *([Mover.OPERATOR], Next.START),
        ),
        (
            *(BLOCKED, RUNS, False),
            *([Reason.KEYS_NEEDED, Reason.NEVER_PLATFORM_KEYS], [Mover.USER], Next.HISTORY),
        ),
        (
            *(replace(BLOCKED, failure_code=FailureCode.KEYS_REJECTED), RUNS, False),
            *([Reason.KEYS_REFUSED, Reason.NEVER_PLATFORM_KEYS], [Mover.USER], Next.HISTORY),
        ),
        (
            *(ended(Status.DEAD_LETTER, Outcome.FAILED, **TRIED), RUNS, False),
            *([Reason.BURIED, Reason.REPLAY_ONLY], [Mover.OPERATOR], Next.HISTORY),
        ),
        (
            ended(
                Status.DEAD_LETTER,
                Outcome.FAILED,
                failure_code=FailureCode.ENVIRONMENT_CONFIGURATION,
                replay_count=1,
            ),
            *(RUNS, False, [Reason.BURIED, Reason.REPLAY_ONLY, Reason.REPLAYED]),
            *([Mover.OPERATOR], Next.CONFIGURATION),
        ),
        (
            *(ended(Status.DEAD_LETTER, Outcome.ABANDONED), RUNS, False),
            *([Reason.GIVEN_UP, Reason.REPLAY_ONLY], [Mover.OPERATOR], Next.HISTORY),
        ),
        (
            *(ended(Status.COMPLETED, Outcome.SUCCESS), RUNS, False),
            *([Reason.DONE], [Mover.NOBODY], Next.NOTHING),
        ),
        (
            *(ended(Status.COMPLETED, Outcome.SUCCESS, effects=(DISCARDED,)), RUNS, False),
            *([Reason.DISCARDED], [Mover.NOBODY], Next.NOTHING),
        ),
        (
            *(ended(Status.COMPLETED, Outcome.SUCCESS, effects=(DROPPED, DROPPED)), RUNS, False),
            *([Reason.DONE, Reason.DELIVERIES_DROPPED], [Mover.NOBODY], Next.DESTINATIONS),
        ),
        (
            *(ended(Status.COMPLETED, Outcome.FENCED), RUNS, False),
            *([Reason.FENCED], [Mover.NOBODY], Next.NOTHING),
        ),
    ],
)
def test_each_case_has_its_reasons_in_order(
    job: Job,
    presence: Presence,
    dead: bool,
    reasons: list[Reason],
    movers: list[Mover],
    following: Next,
) -> None:
    found = explain(Facts(job, NOW, 5, dispatcher=presence, owner_dead=dead))
    assert [one.reason for one in found.reasons] == reasons
    assert list(found.movers) == movers
    assert found.next is following


def test_dropped_deliveries_are_counted_by_code() -> None:
    gone = replace(DROPPED, destination="b", code=EffectCode.DESTINATION_GONE)
    job = ended(Status.COMPLETED, Outcome.SUCCESS, effects=(DROPPED, gone, DROPPED))
    dropped = explain(Facts(job, NOW, 5)).reasons[1:]
    assert [(one.code, one.count) for one in dropped] == [
        (EffectCode.DESTINATION_GONE, 1),
        (EffectCode.HTTP_4XX, 2),
    ]
