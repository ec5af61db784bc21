"""What is read of the deploy files, and what the settings of an environment must then be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from listen_finalization.operate.checks.check import Case
from listen_finalization.operate.deployed import Deployed, DeployFilesError, read_deployed
from listen_finalization.operate.doctor import CHECKS
from listen_finalization.operate.facts import Missing, Seen
from listen_finalization.operate.findings import Code, Finding, Verdict
from listen_finalization.operate.schema import Field, Retention
from listen_finalization.settings import RUN_PATH, Settings

from .live_project import DEPLOY, LiveProject, email

JOBS = "conversation_finalization_jobs"
HANDLER = f"https://backend-sync-123456789012.us-central1.run.app{RUN_PATH}"
NOTHING = Seen(**dict.fromkeys(Seen.__slots__, Missing()))


def written(directory: Path, **changes: Any) -> Path:
    """Write the shipped files with a project, and changes of their first level."""
    told = json.loads((DEPLOY / "production.json").read_text()) | {"project": "acme-prod"}
    (directory / "firestore").mkdir(parents=True)
    (directory / "production.json").write_text(json.dumps(told | changes))
    for name in ("indexes.json", "ttl.json"):
        (directory / "firestore" / name).write_text((DEPLOY / "firestore" / name).read_text())
    return directory


def read(directory: Path, **changes: Any) -> Deployed:
    return read_deployed(written(directory, **changes), "production")


def test_the_shipped_files_are_read_whole(tmp_path: Path) -> None:
    found = read(tmp_path / "deploy")
    assert found.queue_path == (
        "projects/acme-prod/locations/us-central1/queues/conversation-finalization"
    )
    assert found.enqueuers == (email("api"), email("worker"), email("live"))
    assert found.callers == (email("invoker"), email("scheduler"))
    assert found.retention == Retention(JOBS, "completed_at", "2592000s")
    assert found.fields[(JOBS, "completed_at")] == Field(frozenset())
    assert found.fields[(JOBS, "status")] == Field(frozenset({("COLLECTION", "ASCENDING")}))
    assert len(found.indexes) == 3


def test_the_retained_field_may_have_indexes_of_its_own(tmp_path: Path) -> None:
    directory = written(tmp_path / "deploy")
    path = directory / "firestore" / "indexes.json"
    told = json.loads(path.read_text())
    index = {"order": "ASCENDING", "queryScope": "COLLECTION"}
    told["fieldOverrides"].append(
        {"collectionGroup": JOBS, "fieldPath": "completed_at", "indexes": [index]}
    )
    path.write_text(json.dumps(told))
    found = read_deployed(directory, "production").fields[(JOBS, "completed_at")]
    assert found == Field(frozenset({("COLLECTION", "ASCENDING")}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"project": "your-project-id"}, "write the id of your project"),
        ({"queue": {"name": "canary"}}, "lacks a part"),
        ({"budgets": {"canary": "x"}}, "lacks a part"),
        ({"services": []}, "lacks a part"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_without_what_it_holds(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(DeployFilesError) as caught:
        read(tmp_path / "deploy", **changes)
    assert said in str(caught.value)
    assert "production.json" in str(caught.value)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("text", ["{", '"x"', "\udcff"])
def test_a_file_that_is_no_json_document_is_named(text: str, tmp_path: Path) -> None:
    directory = written(tmp_path / "deploy")
    (directory / "production.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DeployFilesError, match=r"production\.json"):
        read_deployed(directory, "production")


@pytest.mark.parametrize("name", ["../production", "a/b", "", "x" * 65])
def test_an_environment_is_a_name_and_no_path(name: str, tmp_path: Path) -> None:
    with pytest.raises(DeployFilesError, match="name of an environment"):
        read_deployed(written(tmp_path / "deploy"), name)


def settings_found(code: Code, deployed: Deployed, **given: Any) -> Finding:
    found = CHECKS[code].find(Case(deployed, Settings(**given)), NOTHING)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("handler", "audience", "verdict"),
    [
        (HANDLER, HANDLER, Verdict.OK),
        (HANDLER, HANDLER.replace("123456789012", "210987654321"), Verdict.FAILURE),
        (HANDLER.replace("backend-sync", "api"), HANDLER, Verdict.FAILURE),
        (HANDLER, f"{HANDLER}/", Verdict.FAILURE),
        (HANDLER, HANDLER.replace("us-central1.", "us-central1x"), Verdict.FAILURE),
        (None, None, Verdict.FAILURE),
    ],
)
def test_the_audience_is_the_address_that_cloud_run_makes_of_the_project_number(
    handler: str | None, audience: str | None, verdict: Verdict, tmp_path: Path
) -> None:
    account = None if audience is None else email("invoker")
    given = {
        "tasks_handler_url": handler,
        "tasks_oidc_audience": audience,
        "tasks_invoker_sa": account,
    }
    found = settings_found(Code.SETTINGS_AUDIENCE, read(tmp_path / "deploy"), **given)
    assert found.verdict is verdict
    assert found.expected == f"https://backend-sync-NUMBER.us-central1.run.app{RUN_PATH}"


def test_a_server_of_this_machine_is_told_of(tmp_path: Path) -> None:
    deployed = read(tmp_path / "deploy")
    assert settings_found(Code.SETTINGS_LOCAL, deployed).verdict is Verdict.OK
    local = settings_found(Code.SETTINGS_LOCAL, deployed, tasks_emulator="127.0.0.1:8123")
    assert (local.verdict, local.remedy) == (Verdict.WARNING, "unset CLOUD_TASKS_EMULATOR_HOST")


def test_what_the_file_adds_for_the_worker_is_what_is_expected(live: LiveProject) -> None:
    path = live.directory / "production.json"
    told = json.loads(path.read_text())
    own = told["services"]["worker"]["environment"]
    own["LISTEN_FINALIZATION_RECONCILE_STALE_SECONDS"] = "600"
    path.write_text(json.dumps(told))
    check = CHECKS[Code.SETTINGS_BUDGETS]
    found = check.find(Case(live.deployed, live.settings), NOTHING)
    assert found is not None
    assert found.found == "LISTEN_FINALIZATION_RECONCILE_STALE_SECONDS is 300"
    assert found.expected == (
        "LISTEN_FINALIZATION_TASKS_MAX_ATTEMPTS=5, "
        "LISTEN_FINALIZATION_TASKS_DISPATCH_DEADLINE_SECONDS=1800, "
        "HTTP_LISTEN_FINALIZATION_RUN_TIMEOUT=1500, "
        "LISTEN_FINALIZATION_RECONCILE_STALE_SECONDS=600, "
        "LISTEN_FINALIZATION_RECONCILE_INTERVAL_SECONDS=300, "
        "LISTEN_FINALIZATION_RUN_LOCK_TTL_SECONDS=1800"
    )


def test_a_setting_that_only_another_role_has_is_not_missed(tmp_path: Path) -> None:
    deployed = read(tmp_path / "deploy")
    found = settings_found(
        Code.SETTINGS_STORE, deployed, firestore_project="acme-prod", firebase_project=None
    )
    assert found.verdict is Verdict.OK


def test_commands_quote_the_directory(tmp_path: Path) -> None:
    deployed = read(tmp_path / "my deploy")
    found = CHECKS[Code.QUEUE_FOUND].find(Case(deployed, Settings()), NOTHING)
    assert found is not None
    assert found.remedy == (
        f"terraform -chdir='{tmp_path}/my deploy/terraform' apply "
        '-var settings_file=../production.json -var release="$RELEASE"'
    )
