"""What each role gets as its environment is what the code reads, whole and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from deploy.deployment import (
    NUMBER,
    PRODUCTION,
    PROJECT,
    UNCONFIGURED,
    Document,
    evaluate,
    read_settings,
)
from listen_finalization.domain.budgets import DispatchMode
from listen_finalization.errors import SettingsError
from listen_finalization.settings import RECONCILE_PATH, RUN_PATH, SETTINGS, Settings

LEFT_AT_THEIR_DEFAULTS = frozenset(
    f"LISTEN_FINALIZATION_{name}"
    for name in (
        "ADMIT_LOOPBACK_DESTINATIONS",
        "BACKOFF_LIMIT_SECONDS",
        "BACKOFF_SECONDS",
        "DATA_DIR",
        "DELIVERY_TIMEOUT_SECONDS",
        "FINALIZE_PER_MINUTE",
        "FIREBASE_CERTS_URL",
        "GOOGLE_CERTS_URL",
        "LEASE_SECONDS",
        "PROCESSOR",
        "SESSION_LIMIT_SECONDS",
    )
) | {"CLOUD_TASKS_EMULATOR_HOST", "FIRESTORE_EMULATOR_HOST"}
"""What no role is given; `environment` of a service in the settings file adds to it."""

LOCK_URL = {"LISTEN_FINALIZATION_RUN_LOCK_URL": "redis://10.0.0.3:6379/0"}
"""Comes from Secret Manager, not from Terraform."""

WORKER = f"https://backend-sync-{NUMBER}.us-central1.run.app"
ACCOUNTS = f"{PROJECT}.iam.gserviceaccount.com"


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Document]:
    yield evaluate(read_settings(PRODUCTION), tmp_path_factory.mktemp("production"))


@pytest.fixture(scope="module")
def unconfigured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Document]:
    yield evaluate(read_settings(UNCONFIGURED), tmp_path_factory.mktemp("unconfigured"))


def given(outputs: Document, role: str) -> Mapping[str, str]:
    lock = LOCK_URL if role in outputs["runners"] else {}
    return {**outputs["environment"][role], **lock}


def test_every_role_has_an_environment(production: Document) -> None:
    assert production["environment"].keys() == {"api", "worker", "live"}


@pytest.mark.parametrize("role", ["api", "worker", "live"])
def test_every_name_is_a_setting_of_the_code(production: Document, role: str) -> None:
    known = {one.name for one in SETTINGS}

    assert given(production, role).keys() - known == set()


def test_no_setting_is_forgotten(production: Document) -> None:
    told = {name for role in production["environment"] for name in given(production, role)}

    assert {one.name for one in SETTINGS} - told == LEFT_AT_THEIR_DEFAULTS


@pytest.mark.parametrize("role", ["api", "worker", "live"])
def test_the_code_accepts_the_environment_of_a_role(production: Document, role: str) -> None:
    settings = Settings.from_environment(given(production, role))

    assert settings.dispatch_mode is DispatchMode.CLOUD_TASKS
    assert settings.tasks_queue == "conversation-finalization"
    assert settings.tasks_handler_url == settings.tasks_oidc_audience == WORKER + RUN_PATH
    assert settings.tasks_invoker_sa == f"finalization-invoker@{ACCOUNTS}"
    assert (settings.tasks_project, settings.tasks_location) == (PROJECT, "us-central1")
    assert settings.firebase_project == PROJECT
    assert all(relation.holds for relation in settings.inequalities())


def test_a_renamed_setting_is_noticed(production: Document) -> None:
    env = dict(given(production, "worker"))
    env["LISTEN_FINALIZATION_TASK_QUEUE"] = env.pop("LISTEN_FINALIZATION_TASKS_QUEUE")

    with pytest.raises(SettingsError, match="LISTEN_FINALIZATION_TASK_QUEUE is not a setting"):
        Settings.from_environment(env)


def test_a_service_name_is_one_setting(tmp_path: Path) -> None:
    settings = read_settings()
    settings["services"]["worker"]["name"] = "finalizer"

    outputs = evaluate(settings, tmp_path)

    url = f"https://finalizer-{NUMBER}.us-central1.run.app"
    assert outputs["handler_url"] == url + RUN_PATH
    assert outputs["reconcile_url"] == url + RECONCILE_PATH
    assert outputs["urls"]["worker"] == url


def test_only_the_roles_that_run_take_the_run_lock(production: Document) -> None:
    holders = {
        role
        for role, env in production["environment"].items()
        if "LISTEN_FINALIZATION_RUN_LOCK_TTL_SECONDS" in env
    }

    assert holders == set(production["runners"]) == {"worker", "live"}


def test_every_role_hands_over(production: Document) -> None:
    assert set(production["enqueuers"]) == {"api", "worker", "live"}


def test_without_a_run_lock_nothing_of_it_is_set(tmp_path: Path) -> None:
    outputs = evaluate(read_settings() | {"run_lock": None}, tmp_path)

    names = {name for env in outputs["environment"].values() for name in env}
    assert outputs["runners"] == []
    assert not {name for name in names if "RUN_LOCK" in name}


def test_turning_the_mode_back_keeps_the_queue_and_the_worker(tmp_path: Path) -> None:
    settings = read_settings() | {"dispatch_mode": "inline"}
    settings["services"]["live"]["min_instances"] = 1

    outputs = evaluate(settings, tmp_path)

    worker = Settings.from_environment(given(outputs, "worker"))
    assert outputs["settings"]["queue"]["name"] == "conversation-finalization"
    assert worker.dispatch_mode is DispatchMode.INLINE
    assert worker.tasks_invoker_sa == f"finalization-invoker@{ACCOUNTS}"


def test_another_environment_stays_unconfigured(unconfigured: Document) -> None:
    assert not unconfigured.keys() & {"handler_url", "reconcile_url"}
    assert unconfigured["enqueuers"] == unconfigured["runners"] == []
    for role in ("api", "live"):
        env = given(unconfigured, role)
        settings = Settings.from_environment(env)
        assert settings.dispatch_mode is DispatchMode.INLINE
        assert not settings.durable_mode
        assert not {name for name in env if "TASKS" in name}


def test_more_settings_reach_their_role_alone(tmp_path: Path) -> None:
    settings = read_settings()
    extra = {"LISTEN_FINALIZATION_PROCESSOR": "acme.finalizing:Processor"}
    settings["services"]["worker"]["environment"] = extra

    environment = evaluate(settings, tmp_path)["environment"]

    assert environment["worker"].items() >= extra.items()
    assert not environment["api"].keys() & extra.keys()


def test_every_image_is_of_the_release(production: Document) -> None:
    assert (
        production["image"] == f"us-central1-docker.pkg.dev/{PROJECT}/listen-finalization/server:v7"
    )
