"""The production settings file agrees with the code's defaults and with itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deploy.deployment import (
    PRODUCTION,
    UNCONFIGURED,
    Document,
    RefusedError,
    evaluate,
    read_settings,
)
from listen_finalization.domain.budgets import MAX_DISPATCH_DEADLINE, DispatchMode
from listen_finalization.http.serving import DRAIN
from listen_finalization.settings import BY_FIELD

STOP_LIMIT = 10
"""Seconds from SIGTERM to SIGKILL on Cloud Run (its container runtime contract)."""


def default(field: str) -> Any:
    return BY_FIELD[field].standing(DispatchMode.CLOUD_TASKS)


def changed(path: str, value: object) -> Document:
    settings = read_settings()
    *parents, last = path.split(".")
    place = settings
    for name in parents:
        place = place[name]
    assert last in place
    place[last] = value
    return settings


def test_the_queue_has_the_attempts_and_the_back_off_of_the_code() -> None:
    queue = read_settings()["queue"]

    assert queue == {
        "name": "conversation-finalization",
        "max_attempts": default("tasks_max_attempts"),
        "max_concurrent_dispatches": 4,
        "max_dispatches_per_second": 500,
        "min_backoff_seconds": default("backoff_seconds"),
        "max_backoff_seconds": default("backoff_limit_seconds"),
        "max_doublings": 6,
    }
    reached = queue["min_backoff_seconds"] * 2 ** queue["max_doublings"]
    assert reached >= queue["max_backoff_seconds"] > reached / 2


def test_the_queue_retries_before_the_reconciler_hands_over_again() -> None:
    settings = read_settings()
    queue = settings["queue"]
    waits = [queue["min_backoff_seconds"] * 2**n for n in range(queue["max_attempts"] - 1)]

    assert max(waits) < settings["budgets"]["reconcile_stale_seconds"]


@pytest.mark.parametrize("path", [PRODUCTION, UNCONFIGURED])
def test_the_budgets_are_the_defaults_of_the_code(path: Path) -> None:
    budgets = read_settings(path)["budgets"]
    grace = budgets.pop("shutdown_grace_seconds")

    assert budgets == {
        "dispatch_deadline_seconds": default("tasks_dispatch_deadline_seconds"),
        "run_timeout_seconds": default("run_timeout_seconds"),
        "run_lock_ttl_seconds": default("run_lock_ttl_seconds"),
        "reconcile_stale_seconds": default("reconcile_stale_seconds"),
        "reconcile_interval_seconds": default("reconcile_interval_seconds"),
    }
    assert DRAIN + grace < STOP_LIMIT


def test_each_limit_outlives_what_it_bounds() -> None:
    settings = read_settings()
    budgets, worker = settings["budgets"], settings["services"]["worker"]

    assert (
        worker["timeout_seconds"]
        >= MAX_DISPATCH_DEADLINE
        >= budgets["dispatch_deadline_seconds"]
        >= budgets["run_timeout_seconds"]
    )
    assert budgets["run_lock_ttl_seconds"] > budgets["run_timeout_seconds"]
    assert settings["scheduler"]["attempt_deadline_seconds"] < budgets["reconcile_interval_seconds"]


def test_the_worker_has_a_slot_for_every_dispatch_of_the_queue() -> None:
    settings = read_settings()
    worker = settings["services"]["worker"]

    assert worker["name"] == "backend-sync"
    assert worker["concurrency"] == default("slots")
    assert worker["concurrency"] >= settings["queue"]["max_concurrent_dispatches"]


def test_the_scheduler_asks_as_often_as_the_processes_do() -> None:
    settings = read_settings()
    minutes = settings["budgets"]["reconcile_interval_seconds"] // 60

    assert settings["scheduler"]["schedule"] == f"*/{minutes} * * * *"


def test_an_unedited_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="id of your project"):
        evaluate(read_settings() | {"project": "your-project-id"}, tmp_path)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("dispatch_mode", "embedded", "dispatch_mode is inline or cloud_tasks"),
        ("dispatch_mode", "inline", "services.live.min_instances >= 1"),
        ("queue", None, "needs a queue"),
        ("queue.name", "sync-jobs", "not sync-jobs or audio-merge"),
        ("queue.name", "Audio-Merge", "not sync-jobs or audio-merge"),
        ("services.worker.timeout_seconds", 1799, "services.worker.timeout_seconds >="),
        ("budgets.run_timeout_seconds", 1801, "dispatch_deadline_seconds >="),
        ("budgets.run_lock_ttl_seconds", 1500, "run_lock_ttl_seconds >"),
    ],
)
def test_terraform_refuses_settings_that_cannot_work(
    tmp_path: Path, path: str, value: object, words: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        evaluate(changed(path, value), tmp_path)

    assert words in " ".join(str(refused.value).replace("│", " ").split())


def test_a_queue_without_a_worker_is_refused(tmp_path: Path) -> None:
    settings = read_settings()
    del settings["services"]["worker"]

    with pytest.raises(RefusedError, match="need each other"):
        evaluate(settings, tmp_path)
