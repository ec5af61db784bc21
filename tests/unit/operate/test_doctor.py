"""The doctor in front of real servers: one change of a project, and exactly one check sees it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from google.cloud import tasks_v2

from listen_finalization.operate.doctor import CHECKS
from listen_finalization.operate.facts import Blind, Unseen
from listen_finalization.operate.findings import Code, Finding, Verdict
from listen_finalization.settings import RUN_PATH

from .google_rest import TOKEN, denied
from .live_project import DATABASE, DEPLOY, INVOKER, SHARED, WORKER, LiveProject, email, members

PREFIX = "LISTEN_FINALIZATION_"
LOCAL = Code.SETTINGS_LOCAL  # these servers are of this machine, and the doctor says so
APPLY = 'apply -var settings_file=../production.json -var release="$RELEASE"'
Change = Callable[[LiveProject], object]


def setting(name: str, value: str) -> Change:
    return lambda live: live.env.update({name: value})


def audience(live: LiveProject) -> None:
    live.env[f"{PREFIX}TASKS_OIDC_AUDIENCE"] = "canary-audience"
    live.document(WORKER)["template"]["containers"][0]["env"][0]["value"] = "canary-audience"


def retry(**fields: object) -> Change:
    def change(live: LiveProject) -> None:
        for name, value in fields.items():
            setattr(live.grpc.queue.retry_config, name, value)

    return change


def rates(name: str, value: float) -> Change:
    return lambda live: setattr(live.grpc.queue.rate_limits, name, value)


def gone(*methods: str) -> Change:
    return lambda live: live.grpc.refused.update(dict.fromkeys(methods, grpc.StatusCode.NOT_FOUND))


def unbound(path: str) -> Change:
    return lambda live: live.document(path)["bindings"][0]["members"].pop()


def service(**fields: object) -> Change:
    return lambda live: live.document(WORKER).update(fields)


def template(**fields: object) -> Change:
    return lambda live: live.document(WORKER)["template"].update(fields)


def other_audience(live: LiveProject) -> None:
    live.document(WORKER)["template"]["containers"][0]["env"][0]["value"] = "canary-audience"


def without_worker(live: LiveProject) -> None:
    del live.rest.answers[WORKER], live.rest.answers[f"{WORKER}:getIamPolicy"]


def handler(bare: int, junk: int) -> Change:
    """Let the task route be answered by a front end instead of the worker."""

    def change(live: LiveProject) -> None:
        live.rest.handler = (bare, junk)
        there = live.rest.url + RUN_PATH
        path = live.directory / "production.json"
        path.write_text(path.read_text().replace(live.env[f"{PREFIX}TASKS_HANDLER_URL"], there))
        live.env[f"{PREFIX}TASKS_HANDLER_URL"] = live.env[f"{PREFIX}TASKS_OIDC_AUDIENCE"] = there
        live.document(WORKER)["urls"] = [live.rest.url]
        live.document(WORKER)["template"]["containers"][0]["env"][0]["value"] = there

    return change


def index(**fields: object) -> Change:
    return lambda live: live.document(f"{DATABASE}/indexes")["indexes"][1].update(fields)


def listed(live: LiveProject, name: str) -> dict[str, Any]:
    told: list[dict[str, Any]] = live.document(f"{DATABASE}/fields")["fields"]
    return next(one for one in told if one["name"].endswith(f"/{name}"))


def field(name: str, **fields: object) -> Change:
    return lambda live: listed(live, name).update(fields)


def unlisted(live: LiveProject) -> None:
    live.document(f"{DATABASE}/fields")["fields"].remove(listed(live, "completed_at"))


def unready_field(live: LiveProject) -> None:
    told = listed(live, "reconcile_after_at")
    told["indexConfig"]["indexes"][0]["state"] = "CREATING"


def store_ahead(seconds: float) -> Change:
    return lambda live: setattr(live.grpc, "ahead", seconds)


def keys(path: str) -> Change:
    return lambda live: live.rest.answers.update({path: (500, {})})


FAILURES: list[tuple[Code, Change, Verdict, str]] = [
    (Code.SETTINGS_MODE, setting(f"{PREFIX}DISPATCH_MODE", "inline"), Verdict.FAILURE, "is inline"),
    (Code.SETTINGS_QUEUE, setting(f"{PREFIX}TASKS_QUEUE", "canary"), Verdict.FAILURE, "another"),
    (Code.SETTINGS_AUDIENCE, audience, Verdict.FAILURE, "TASKS_OIDC_AUDIENCE is another"),
    (Code.SETTINGS_ACCOUNTS, setting(f"{PREFIX}SCHEDULER_SA", "canary@x.y"), Verdict.FAILURE, "SA"),
    (
        Code.SETTINGS_BUDGETS,
        setting(f"{PREFIX}RECONCILE_STALE_SECONDS", "301"),
        Verdict.FAILURE,
        "RECONCILE_STALE_SECONDS is 301",
    ),
    (
        Code.SETTINGS_STORE,
        setting(f"{PREFIX}FIRESTORE_DATABASE", "canary"),
        Verdict.FAILURE,
        "FIRESTORE_DATABASE is another",
    ),
    (Code.QUEUE_FOUND, gone("GetQueue", "GetIamPolicy"), Verdict.FAILURE, "none"),
    (
        Code.QUEUE_RUNNING,
        lambda live: setattr(live.grpc.queue, "state", tasks_v2.Queue.State.PAUSED),
        Verdict.WARNING,
        "paused",
    ),
    (Code.QUEUE_ATTEMPTS, retry(max_attempts=3), Verdict.FAILURE, "3"),
    (Code.QUEUE_BACKOFF, retry(min_backoff=timedelta(seconds=1)), Verdict.FAILURE, "1 s to 600 s"),
    (Code.QUEUE_BACKOFF, retry(max_backoff=timedelta(hours=1)), Verdict.FAILURE, "to 3600 s"),
    (Code.QUEUE_BACKOFF, retry(max_doublings=16), Verdict.FAILURE, "16 doublings"),
    (Code.QUEUE_BACKOFF, retry(max_retry_duration=timedelta(60)), Verdict.FAILURE, "at most"),
    (Code.QUEUE_CONCURRENCY, rates("max_concurrent_dispatches", 9), Verdict.FAILURE, "9 at once"),
    (Code.QUEUE_RATE, rates("max_dispatches_per_second", 7), Verdict.FAILURE, "7 a second"),
    (
        Code.QUEUE_ENQUEUERS,
        lambda live: live.grpc.policy.bindings[0].members.pop(),
        Verdict.FAILURE,
        f"not: {email('live')}",
    ),
    (
        Code.INVOKER_USERS,
        unbound(INVOKER.format(email("invoker"))),
        Verdict.FAILURE,
        f"not: {email('live')}",
    ),
    (
        Code.INVOKER_USERS,
        lambda live: live.rest.answers.pop(INVOKER.format(email("invoker"))),
        Verdict.FAILURE,
        "no such account",
    ),
    (
        Code.WORKER_CALLERS,
        unbound(f"{WORKER}:getIamPolicy"),
        Verdict.WARNING,
        f"not: {email('scheduler')}",
    ),
    (Code.WORKER_FOUND, without_worker, Verdict.FAILURE, "none"),
    (Code.WORKER_INVOKER_CHECK, service(invokerIamDisabled=False), Verdict.FAILURE, "on: "),
    (Code.WORKER_INGRESS, service(ingress="INGRESS_TRAFFIC_ALL"), Verdict.FAILURE, "_ALL"),
    (Code.WORKER_TIMEOUT, template(timeout="300s"), Verdict.FAILURE, "300 s"),
    (Code.WORKER_ACCOUNT, template(serviceAccount="other@x.y"), Verdict.FAILURE, "other@x.y"),
    (Code.WORKER_URL, service(urls=["https://other.run.app"]), Verdict.FAILURE, "none of"),
    (Code.WORKER_AUDIENCE, other_audience, Verdict.FAILURE, "unlike here"),
    (Code.STORE_READ, gone("BatchGetDocuments"), Verdict.FAILURE, "no such database"),
    (
        Code.STORE_INDEXES,
        index(queryScope="COLLECTION_GROUP"),
        Verdict.FAILURE,
        "missing: conversation_finalization_jobs(status ASCENDING, created_at DESCENDING)",
    ),
    (Code.STORE_INDEXES, index(state="CREATING"), Verdict.FAILURE, "not ready: conversation"),
    (
        Code.STORE_FIELDS,
        field("reconcile_after_at", indexConfig={}),
        Verdict.FAILURE,
        "jobs.reconcile_after_at",
    ),
    (Code.STORE_FIELDS, unready_field, Verdict.FAILURE, "not ready: conversation"),
    (
        Code.STORE_RETENTION,
        field("completed_at", ttlConfig={"state": "CREATING"}),
        Verdict.FAILURE,
        "0s after",
    ),
    (
        Code.STORE_RETENTION,
        field("completed_at", ttlConfig={"state": "CREATING", "expirationOffset": "2592000s"}),
        Verdict.FAILURE,
        "not in force",
    ),
    (
        Code.STORE_RETENTION,
        unlisted,
        Verdict.FAILURE,
        "none",
    ),
    (Code.CLOCK, store_ahead(60), Verdict.FAILURE, "s behind"),
    (Code.CLOCK, store_ahead(-60), Verdict.FAILURE, "s ahead"),
    (Code.CLOCK, store_ahead(-5), Verdict.WARNING, "s ahead"),
    (Code.TASK_KEYS, keys("/certs/google"), Verdict.FAILURE, "bad_status"),
    (Code.USER_KEYS, keys("/certs/users"), Verdict.FAILURE, "bad_status"),
    (
        Code.RUN_LOCK,
        setting(f"{PREFIX}RUN_LOCK_URL", "redis://:canary@127.0.0.1:1/0"),
        Verdict.WARNING,
        "unreachable",
    ),
]
ROUTE: list[tuple[Code, Change, Verdict, str]] = [
    (Code.HANDLER_WITHOUT_TOKEN, handler(400, 401), Verdict.FAILURE, "400: it lets strangers in"),
    (Code.HANDLER_WITHOUT_TOKEN, handler(403, 401), Verdict.FAILURE, "403 of Cloud Run's own"),
    (Code.HANDLER_WITHOUT_TOKEN, handler(404, 401), Verdict.WARNING, "404 of the front end"),
    (Code.HANDLER_JUNK_TOKEN, handler(401, 200), Verdict.FAILURE, "200: it lets strangers in"),
    (Code.HANDLER_JUNK_TOKEN, handler(401, 401), Verdict.FAILURE, "401 of Cloud Run's own"),
    (Code.HANDLER_JUNK_TOKEN, handler(401, 503), Verdict.FAILURE, "503"),
]


async def test_a_project_that_is_as_its_files_say_has_nothing_to_repair(live: LiveProject) -> None:
    found = await live.examined()
    expected = dict.fromkeys([code for code in Code if code is not Code.RUN_LOCK], Verdict.OK)
    assert {code: one.verdict for code, one in found.items()} == expected | {LOCAL: Verdict.WARNING}
    assert all(one.remedy is None for code, one in found.items() if code is not LOCAL)


@pytest.mark.parametrize(
    ("code", "change", "verdict", "said"), FAILURES, ids=lambda value: getattr(value, "value", "")
)
async def test_one_change_is_one_finding(
    code: Code, change: Change, verdict: Verdict, said: str, live: LiveProject
) -> None:
    change(live)
    found = await live.examined()
    wrong = {one.code: one.verdict for one in found.values() if one.verdict is not Verdict.OK}
    assert wrong == {LOCAL: Verdict.WARNING, code: verdict}
    assert said in found[code].found
    assert found[code].remedy
    assert "canary" not in repr(found)


@pytest.mark.parametrize(
    ("code", "change", "verdict", "said"), ROUTE, ids=lambda value: getattr(value, "value", "")
)
async def test_only_a_worker_that_answers_401_itself_keeps_strangers_out(
    code: Code, change: Change, verdict: Verdict, said: str, live: LiveProject
) -> None:
    change(live)
    found = (await live.examined())[code]
    assert (found.verdict, found.expected) == (verdict, "401")
    assert said in found.found


async def test_a_front_end_that_lets_nobody_in_is_no_excuse_where_ingress_is_open(
    live: LiveProject,
) -> None:
    handler(404, 404)(live)
    path = live.directory / "production.json"
    path.write_text(path.read_text().replace('"ingress": "internal"', '"ingress": "all"'))
    found = (await live.examined())[Code.HANDLER_WITHOUT_TOKEN]
    assert (found.verdict, found.found) == (Verdict.FAILURE, "404: no task route there")


async def test_a_run_lock_that_hangs_is_a_warning(live: LiveProject) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        live.env[f"{PREFIX}RUN_LOCK_URL"] = f"redis://127.0.0.1:{port}/0"
        found = (await live.examined(deadline=0.3))[Code.RUN_LOCK]
    assert (found.verdict, found.found) == (
        Verdict.WARNING,
        "not looked at: no answer within the deadline",
    )


def test_each_check_has_a_change_that_fails_it() -> None:
    changed = {code for code, *_ in (*FAILURES, *ROUTE)}
    assert changed == set(Code) - {LOCAL} == set(CHECKS) - {LOCAL}


async def test_a_right_on_the_whole_project_is_a_warning(live: LiveProject) -> None:
    unbound(INVOKER.format(email("invoker")))(live)
    role = "roles/iam.serviceAccountUser"
    live.document(SHARED)["bindings"] = [{"role": role, "members": members("live")}]
    found = (await live.examined())[Code.INVOKER_USERS]
    assert (found.verdict, found.found) == (
        Verdict.WARNING,
        f"on the whole project only: {email('live')}",
    )


async def test_a_right_on_the_queue_under_a_condition_does_not_count(live: LiveProject) -> None:
    live.grpc.policy.bindings[0].condition.expression = "false"
    assert (await live.examined())[Code.QUEUE_ENQUEUERS].verdict is Verdict.FAILURE


@pytest.mark.parametrize("where", ["resource", "project"])
async def test_a_right_under_a_condition_does_not_count(where: str, live: LiveProject) -> None:
    path = INVOKER.format(email("invoker"))
    bindings = live.document(path)["bindings"]
    if where == "project":
        live.document(SHARED)["bindings"] = [dict(bindings[0])]
        bindings.clear()
        bindings = live.document(SHARED)["bindings"]
    bindings[0]["condition"] = {"expression": "false"}
    found = (await live.examined())[Code.INVOKER_USERS]
    assert found.verdict is Verdict.FAILURE


async def test_an_enqueuer_that_is_the_invoker_must_act_as_itself(live: LiveProject) -> None:
    path = live.directory / "production.json"
    path.write_text(path.read_text().replace("finalization-invoker", "finalization-worker"))
    live.env[f"{PREFIX}TASKS_INVOKER_SA"] = email("worker")
    bound = live.rest.answers.pop(INVOKER.format(email("invoker")))
    live.rest.answers[INVOKER.format(email("worker"))] = bound
    assert (await live.examined())[Code.INVOKER_USERS].verdict is Verdict.OK
    bound[1]["bindings"][0]["members"].remove(*members("worker"))
    found = (await live.examined())[Code.INVOKER_USERS]
    assert (found.verdict, found.found) == (Verdict.FAILURE, f"not: {email('worker')}")


async def test_a_clock_is_read_off_a_key_server_where_the_store_is_not_seen(
    live: LiveProject,
) -> None:
    live.grpc.refused["BatchGetDocuments"] = grpc.StatusCode.PERMISSION_DENIED
    live.rest.date = "Sat, 01 Jan 2000 00:00:00 GMT"
    found = await live.examined()
    assert (found[Code.CLOCK].verdict, "s ahead" in found[Code.CLOCK].found) == (
        Verdict.FAILURE,
        True,
    )
    assert found[Code.STORE_READ].verdict is Verdict.UNKNOWN


async def test_every_page_of_a_list_is_read(live: LiveProject) -> None:
    path = f"{DATABASE}/indexes"
    whole = live.document(path)["indexes"]
    live.rest.answers[path] = (200, {"indexes": whole[:1], "nextPageToken": "two"})
    live.rest.answers[f"{path}two"] = (200, {"indexes": whole[1:]})
    assert (await live.examined())[Code.STORE_INDEXES].verdict is Verdict.OK


LOOKS = [
    (WORKER, Code.WORKER_FOUND, "roles/run.viewer", "run.googleapis.com"),
    (
        f"{WORKER}:getIamPolicy",
        Code.WORKER_CALLERS,
        "roles/iam.securityReviewer",
        "run.googleapis.com",
    ),
    (
        INVOKER.format(email("invoker")),
        Code.INVOKER_USERS,
        "roles/iam.securityReviewer",
        "iam.googleapis.com",
    ),
    (
        f"{DATABASE}/indexes",
        Code.STORE_INDEXES,
        "roles/datastore.viewer",
        "firestore.googleapis.com",
    ),
    (
        f"{DATABASE}/fields",
        Code.STORE_RETENTION,
        "roles/datastore.viewer",
        "firestore.googleapis.com",
    ),
]


@pytest.mark.parametrize(("path", "code", "role", "api"), LOOKS, ids=lambda value: str(value))
async def test_who_may_not_look_is_told_the_role_or_the_api(
    path: str, code: Code, role: str, api: str, live: LiveProject
) -> None:
    live.rest.answers[path] = denied()
    found = (await live.examined())[code]
    assert (found.verdict, f"--role={role}" in (found.remedy or "")) == (Verdict.UNKNOWN, True)
    live.rest.answers[path] = denied("SERVICE_DISABLED")
    found = (await live.examined())[code]
    assert found.remedy == f"gcloud services enable {api} --project=acme-prod"


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (grpc.StatusCode.PERMISSION_DENIED, "roles/cloudtasks.viewer"),
        (grpc.StatusCode.UNAUTHENTICATED, "application-default login"),
        (grpc.StatusCode.UNIMPLEMENTED, "CLOUD_TASKS_EMULATOR_HOST"),
        (grpc.StatusCode.UNAVAILABLE, "again"),
    ],
)
async def test_a_queue_that_could_not_be_looked_at_is_unknown(
    status: grpc.StatusCode, remedy: str, live: LiveProject
) -> None:
    live.grpc.refused["GetQueue"] = status
    found = (await live.examined())[Code.QUEUE_ATTEMPTS]
    assert (found.verdict, remedy in (found.remedy or "")) == (Verdict.UNKNOWN, True)
    assert found.expected == "5"


async def test_a_check_that_hangs_is_unknown_within_its_deadline(live: LiveProject) -> None:
    live.rest.hanging.add(WORKER)
    found = (await live.examined(deadline=0.3))[Code.WORKER_FOUND]
    assert found == Finding(
        Code.WORKER_FOUND,
        Verdict.UNKNOWN,
        "a service backend-sync",
        "not looked at: no answer within the deadline",
        "run doctor again with a longer --deadline",
    )


async def test_a_document_of_another_shape_is_an_odd_answer_and_no_crash(live: LiveProject) -> None:
    for path in (WORKER, f"{DATABASE}/fields", INVOKER.format(email("invoker"))):
        live.rest.answers[path] = (200, {"template": 7, "fields": [1], "bindings": [{}]})
    found = await live.examined()
    codes = (Code.WORKER_FOUND, Code.STORE_FIELDS, Code.INVOKER_USERS)
    assert {found[code].found for code in codes} == {"not looked at: the answer was not understood"}


async def test_an_account_that_google_does_not_take_is_no_account(live: LiveProject) -> None:
    live.rest.answers[WORKER] = (401, {})
    found = (await live.examined())[Code.WORKER_FOUND]
    assert (found.verdict, found.remedy) == (
        Verdict.UNKNOWN,
        "gcloud auth application-default login",
    )


async def test_without_an_account_google_is_not_asked(live: LiveProject) -> None:
    found = await live.examined(account=Unseen(Blind.NO_CREDENTIALS))
    assert found[Code.WORKER_FOUND].remedy == "gcloud auth application-default login"
    asked = {path for path, _, _ in live.rest.asked}
    assert asked == {"/certs/google", "/certs/users"}


async def test_the_account_is_shown_to_google_alone_and_conditions_are_asked_for(
    live: LiveProject,
) -> None:
    await live.examined()
    shown = {path for path, _, token in live.rest.asked if token == f"Bearer {TOKEN}"}
    assert not [path for path in shown if path.startswith("/certs")]
    versions = {
        path: query.get("options.requestedPolicyVersion")
        for path, query, _ in live.rest.asked
        if path.endswith(":getIamPolicy") and path != SHARED
    }
    assert list(versions.values()) == [["3"], ["3"]]


async def test_an_environment_without_a_queue_is_asked_for_none(live: LiveProject) -> None:
    shipped = (DEPLOY / "unconfigured.json").read_text()
    written = shipped.replace("your-other-project-id", "acme-prod")
    (live.directory / "production.json").write_text(written)
    live.env = {
        name: value
        for name, value in live.env.items()
        if "TASKS" not in name and "SCHEDULER" not in name and "MODE" not in name
    } | {f"{PREFIX}FIRESTORE_PROJECT": "acme-prod"}
    found = await live.examined()
    assert {one.verdict for one in found.values()} == {Verdict.OK}
    assert not [code for code in found if code.startswith(("queue", "worker", "handler"))]
