"""The queue engine by itself: names, tombstones, limits, attempts, with a clock in hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from listen_finalization.domain.job import Instant, seconds
from listen_finalization.testing.cloud_tasks import limits
from listen_finalization.testing.cloud_tasks.engine import Engine
from listen_finalization.testing.cloud_tasks.refusals import CallRefusedError, Code
from listen_finalization.testing.cloud_tasks.values import (
    Answer,
    Attempt,
    Dispatch,
    Ending,
    Queue,
    QueueState,
    RateLimits,
    RetryConfig,
    Target,
    Task,
)

QUEUE = "projects/p/locations/l/queues/q"
NAME = f"{QUEUE}/tasks/t"
AT = Instant(1_760_000_000_000_000)
OK, BAD = Answer(200), Answer(500, Ending.HTTP_STATUS)


def after(wait: float) -> Instant:
    return Instant(AT + seconds(wait))


def task(name: str = NAME, at: Instant = AT, **fields: Any) -> Task:
    return Task(name, Target("http://127.0.0.1/"), at, fields.pop("schedule", at), at, **fields)


def engine(**fields: Any) -> Engine:
    made = Engine()
    made.create_queue(Queue(QUEUE, **fields), AT)
    return made


def begun(made: Engine, now: Instant = AT) -> Dispatch:
    (one,) = made.dispatch(now)
    return one


def refused(code: Code, call: Any, *arguments: Any) -> None:
    with pytest.raises(CallRefusedError) as fault:
        call(*arguments)
    assert fault.value.code is code


def test_a_task_that_succeeds_leaves_and_its_name_stays_taken_for_a_day() -> None:
    made = engine()
    made.create_task(task(), AT)
    made.settle(begun(made), OK, after(1))
    refused(Code.NOT_FOUND, made.task, NAME, after(1))
    held = after(1) + limits.TASK_NAME_HELD
    refused(Code.ALREADY_EXISTS, made.create_task, task(), Instant(held - 1))
    assert made.create_task(task(at=Instant(held)), Instant(held)).name == NAME


@pytest.mark.parametrize("end", ["delete_task", "purge_queue"])
def test_a_task_that_is_deleted_leaves_its_name_taken(end: str) -> None:
    made = engine()
    made.create_task(task(), AT)
    getattr(made, end)(NAME if end == "delete_task" else QUEUE, AT)
    assert made.dispatch(AT) == []
    refused(Code.ALREADY_EXISTS, made.create_task, task(), after(1))


def test_a_lost_task_has_its_name_taken_and_is_nowhere() -> None:
    made = engine()
    made.create_task(task(), AT, lost=True)
    assert made.tasks(QUEUE, AT) == [] and made.dispatch(AT) == []
    refused(Code.ALREADY_EXISTS, made.create_task, task(), AT)


def test_a_deleted_queue_takes_no_tasks_and_keeps_its_name_for_three_days() -> None:
    made = engine()
    made.create_task(task(), AT)
    made.delete_queue(QUEUE, AT)
    refused(Code.NOT_FOUND, made.queue, QUEUE, AT)
    refused(Code.FAILED_PRECONDITION, made.create_task, task(), AT)
    free = Instant(AT + limits.QUEUE_NAME_HELD)
    refused(Code.FAILED_PRECONDITION, made.create_queue, Queue(QUEUE), Instant(free - 1))
    assert made.create_queue(Queue(QUEUE), free) == Queue(QUEUE)
    refused(Code.ALREADY_EXISTS, made.create_queue, Queue(QUEUE), free)


def test_the_tasks_of_a_deleted_queue_are_gone_from_what_is_recorded() -> None:
    told: dict[str, Any] = {}
    made = Engine(lambda name, kept: told.update({name: kept}))
    made.create_queue(Queue(QUEUE), AT)
    made.create_task(task(), AT)
    made.delete_queue(QUEUE, AT)
    assert told == {NAME: AT + limits.TASK_NAME_HELD, QUEUE: AT + limits.QUEUE_NAME_HELD}
    again = Engine()
    for name, kept in told.items():
        again.restore(name, kept, AT)
    refused(Code.FAILED_PRECONDITION, again.create_queue, Queue(QUEUE), AT)


def test_what_never_was_is_not_found() -> None:
    made = Engine()
    refused(Code.NOT_FOUND, made.create_task, task(), AT)
    refused(Code.NOT_FOUND, made.queue, QUEUE, AT)
    refused(Code.NOT_FOUND, engine().task, NAME, AT)


def test_an_attempt_shows_on_the_task_and_its_failure_schedules_the_next() -> None:
    retry = RetryConfig(least_backoff=seconds(10), most_backoff=seconds(40))
    made = engine(retry=retry)
    made.create_task(task(), AT)
    first = begun(made)
    assert first == Dispatch(1, task(), QUEUE, AT, Instant(AT + limits.DEFAULT_DEADLINE))
    running = Attempt(scheduled=AT, dispatched=AT)
    assert made.task(NAME, AT) == replace(task(), dispatches=1, first=running, last=running)
    made.settle(first, BAD, after(2))
    failed = Attempt(AT, AT, after(2), 500, Ending.HTTP_STATUS)
    assert made.task(NAME, AT) == replace(
        task(),
        schedule=after(12),
        ready=after(12),
        dispatches=1,
        responses=1,
        first=running,
        last=failed,
    )
    assert made.dispatch(after(11.9)) == [] and made.next_event(after(3)) == after(12)
    assert begun(made, after(12)).task.dispatches == 1


def test_an_attempt_without_an_answer_is_no_response() -> None:
    made = engine()
    made.create_task(task(), AT)
    made.settle(begun(made), Answer(ending=Ending.UNREACHABLE), AT)
    left = made.task(NAME, AT)
    assert (left.dispatches, left.responses) == (1, 0)


def test_the_last_attempt_that_fails_ends_the_task() -> None:
    made = engine(retry=RetryConfig(max_attempts=2, least_backoff=1, most_backoff=1))
    made.create_task(task(), AT)
    made.settle(begun(made), BAD, AT)
    made.settle(begun(made, after(1)), BAD, after(1))
    refused(Code.NOT_FOUND, made.task, NAME, after(1))
    assert made.next_event(after(1)) is None


def test_a_task_may_have_a_retry_configuration_of_its_own() -> None:
    made = engine(retry=RetryConfig(max_attempts=9))
    made.create_task(task(retry=RetryConfig(max_attempts=1)), AT)
    made.settle(begun(made), BAD, AT)
    refused(Code.NOT_FOUND, made.task, NAME, AT)


def test_an_overdue_attempt_is_told_until_it_is_settled_and_its_late_answer_is_dropped() -> None:
    made = engine()
    made.create_task(task(deadline=seconds(15)), AT)
    first = begun(made)
    assert made.next_event(AT) == after(15)
    assert made.overdue(after(14.9)) == []
    assert made.overdue(after(15)) == [first]
    made.settle(first, Answer(ending=Ending.DEADLINE_EXCEEDED), after(15))
    assert made.overdue(after(15)) == []
    made.settle(first, OK, after(16))
    assert made.task(NAME, AT).dispatches == 1


def test_the_answer_to_a_deleted_task_or_queue_changes_nothing() -> None:
    made = engine()
    made.create_task(task(), AT)
    first = begun(made)
    made.delete_task(NAME, AT)
    made.settle(first, BAD, AT)
    assert made.tasks(QUEUE, AT) == []
    made.delete_queue(QUEUE, AT)
    made.settle(first, BAD, AT)


def test_no_more_run_at_once_than_the_queue_allows() -> None:
    made = engine(rates=RateLimits(concurrent=2))
    for number in range(5):
        made.create_task(task(f"{NAME}{number}"), AT)
    first, second = made.dispatch(AT)
    assert made.dispatch(AT) == []
    made.settle(first, OK, AT)
    (third,) = made.dispatch(AT)
    made.settle(second, BAD, AT)
    assert len(made.dispatch(AT)) == 1
    assert third.task.name == f"{NAME}2"


def test_the_rate_bounds_what_begins_and_the_engine_says_when_to_go_on() -> None:
    made = engine(rates=RateLimits(rate=2.0))
    for number in range(5):
        made.create_task(task(f"{NAME}{number}"), AT)
    assert len(made.dispatch(AT)) == 2
    due = made.next_event(AT)
    assert due is not None and seconds(0.5) <= due - AT <= seconds(0.5) + 2
    assert len(made.dispatch(due)) == 1
    assert len(made.dispatch(after(10))) == 2


def test_a_paused_queue_takes_tasks_and_begins_none_until_it_is_resumed() -> None:
    made = engine()
    made.set_state(QUEUE, QueueState.PAUSED, AT)
    made.create_task(task(), AT)
    assert made.dispatch(AT) == [] and made.next_event(AT) is None
    assert made.set_state(QUEUE, QueueState.RUNNING, AT).state is QueueState.RUNNING
    assert len(made.dispatch(AT)) == 1


def test_run_goes_past_schedule_pause_and_limits_and_restarts_the_wait() -> None:
    retry = RetryConfig(least_backoff=seconds(10), most_backoff=seconds(10))
    made = engine(rates=RateLimits(concurrent=1), retry=retry)
    made.create_task(task(f"{NAME}0"), AT)
    begun(made)
    later = replace(task(), schedule=after(3600), ready=after(3600))
    made.create_task(later, AT)
    made.set_state(QUEUE, QueueState.PAUSED, AT)
    shown, dispatch = made.run_task(NAME, after(1))
    assert (shown.dispatches, dispatch.forced, dispatch.task) == (1, True, later)
    made.settle(dispatch, BAD, after(5))
    assert made.task(NAME, AT).schedule == after(11)


def test_of_two_attempts_at_once_a_failure_waits_for_the_other() -> None:
    made = engine(retry=RetryConfig(max_attempts=1))
    made.create_task(task(), AT)
    first = begun(made)
    _, second = made.run_task(NAME, AT)
    made.settle(first, BAD, AT)
    assert made.dispatch(after(9999)) == [] and made.task(NAME, AT).dispatches == 2
    made.settle(second, OK, AT)
    refused(Code.NOT_FOUND, made.task, NAME, AT)


def test_an_update_changes_numbers_and_not_the_state() -> None:
    made = engine()
    made.set_state(QUEUE, QueueState.PAUSED, AT)
    asked = Queue(QUEUE, RateLimits(7.0, 3), RetryConfig(max_attempts=4))
    assert made.update_queue(asked, AT) == replace(asked, state=QueueState.PAUSED)


def test_a_purged_queue_shows_when() -> None:
    made = engine()
    assert made.purge_queue(QUEUE, after(3)).purged == after(3)


def test_a_task_is_gone_after_a_month() -> None:
    made = engine(retry=RetryConfig(max_attempts=-1))
    made.create_task(task(), AT)
    made.set_state(QUEUE, QueueState.PAUSED, AT)
    old = Instant(AT + limits.RETENTION)
    made.set_state(QUEUE, QueueState.RUNNING, old)
    assert made.dispatch(old) == [] and made.tasks(QUEUE, old) == []


def test_a_name_that_is_used_again_is_not_forgotten_with_its_tombstone() -> None:
    told: dict[str, Any] = {}
    made = Engine(lambda name, kept: told.update({name: kept}))
    made.create_queue(Queue(QUEUE), AT)
    made.create_task(task(), AT, lost=True)
    later = Instant(AT + limits.TASK_NAME_HELD)
    again = made.create_task(task(at=later), later)
    made.create_task(task(f"{NAME}1"), later, lost=True)
    assert told[NAME] == again
    made.delete_queue(QUEUE, later)
    free = Instant(later + limits.QUEUE_NAME_HELD)
    made.create_queue(Queue(QUEUE), free)
    made.create_queue(Queue(f"{QUEUE}2"), free)
    made.delete_queue(f"{QUEUE}2", free)
    assert told[QUEUE] == Queue(QUEUE)


def test_names_that_are_held_no_more_are_forgotten() -> None:
    told: dict[str, Any] = {}
    made = Engine(lambda name, kept: told.update({name: kept}))
    made.create_queue(Queue(QUEUE), AT)
    made.create_task(task(f"{NAME}0"), AT, lost=True)
    later = Instant(AT + limits.TASK_NAME_HELD)
    made.create_task(task(f"{NAME}1"), later, lost=True)
    assert told == {
        QUEUE: Queue(QUEUE),
        f"{NAME}0": None,
        f"{NAME}1": later + limits.TASK_NAME_HELD,
    }
