"""Settings: declared once, checked as a whole, silent about what they hold."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import replace
from pathlib import Path

import pytest

from listen_finalization.domain.budgets import DispatchMode
from listen_finalization.domain.job import seconds
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import SettingsError
from listen_finalization.settings import (
    BY_FIELD,
    MASKED,
    SETTINGS,
    UNSET,
    Described,
    Setting,
    Settings,
)

PREFIX = "LISTEN_FINALIZATION_"
MODE = f"{PREFIX}DISPATCH_MODE"
QUEUE = f"{PREFIX}TASKS_QUEUE"
HANDLER = f"{PREFIX}TASKS_HANDLER_URL"
SCHEDULER = f"{PREFIX}SCHEDULER_SA"
DATABASE = f"{PREFIX}FIRESTORE_DATABASE"
EMULATOR = "CLOUD_TASKS_EMULATOR_HOST"
FIRESTORE = "FIRESTORE_EMULATOR_HOST"
AUDIENCE = f"{PREFIX}TASKS_OIDC_AUDIENCE"
INVOKER = f"{PREFIX}TASKS_INVOKER_SA"
LEASE = f"{PREFIX}LEASE_SECONDS"
STALE = f"{PREFIX}RECONCILE_STALE_SECONDS"
DEADLINE = f"{PREFIX}TASKS_DISPATCH_DEADLINE_SECONDS"
RUN = "HTTP_LISTEN_FINALIZATION_RUN_TIMEOUT"
LOOPBACK = f"{PREFIX}ADMIT_LOOPBACK_DESTINATIONS"
DATA = f"{PREFIX}DATA_DIR"
PROCESSOR = f"{PREFIX}PROCESSOR"
CERTS = f"{PREFIX}GOOGLE_CERTS_URL"
LOCK_URL = f"{PREFIX}RUN_LOCK_URL"
LOCK_TTL = f"{PREFIX}RUN_LOCK_TTL_SECONDS"
RUN_URL = "https://worker.example.com/v1/conversation-finalization-jobs/run"
EMBEDDED = {MODE: "embedded"}
PRODUCTION = {
    MODE: "cloud_tasks",
    QUEUE: "conversation-finalization",
    HANDLER: RUN_URL,
    AUDIENCE: RUN_URL,
    INVOKER: "tasks@omi-prod.iam.gserviceaccount.com",
    f"{PREFIX}TASKS_MAX_ATTEMPTS": "5",
    RUN: "1500",
    STALE: "300",
    "SYNC_TASKS_PROJECT": "omi-prod",
    "SYNC_TASKS_LOCATION": "us-central1",
}
CANARY = "canary-4be2d6"


def faults(env: dict[str, str]) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment(env)
    headline, *lines = str(caught.value).splitlines()
    assert headline == "settings that cannot work:"
    return [line.removeprefix("- ") for line in lines]


def refused(name: str) -> str:
    [one] = [one for one in SETTINGS if one.name == name]
    return f"{name} must be {one.expects}"


# Declarations


def test_each_field_is_backed_by_exactly_one_setting() -> None:
    fields = [field.name for field in dataclasses.fields(Settings)]

    assert [*BY_FIELD, "given"] == fields
    assert list(SETTINGS) == list(BY_FIELD.values())
    assert len({one.name for one in SETTINGS}) == len(SETTINGS) == 33


@pytest.mark.parametrize(("field", "one"), BY_FIELD.items(), ids=BY_FIELD.keys())
def test_a_declared_default_is_a_value_of_its_field(field: str, one: Setting) -> None:
    hints = typing.get_type_hints(Settings)[field]
    types = tuple(typing.get_args(hints)) or (hints,)

    for mode in DispatchMode:
        value = one.standing(mode)
        assert isinstance(value, types + ((int,) if float in types else ()))
        assert value is None or one.admits(value)
    assert (type(None) in types) is (one.default is None)
    assert one.about
    assert not one.about.endswith(".")


def test_the_defaults_are_those_of_the_seed_and_the_contract() -> None:
    assert Settings.from_environment({}) == Settings()
    shown = {name: value for name, value, _ in Settings().described()}
    assert shown == {
        MODE: "inline",
        QUEUE: UNSET,
        HANDLER: UNSET,
        AUDIENCE: UNSET,
        INVOKER: UNSET,
        f"{PREFIX}TASKS_MAX_ATTEMPTS": "5",
        DEADLINE: "1800",
        RUN: "1500",
        STALE: "300",
        f"{PREFIX}RECONCILE_INTERVAL_SECONDS": "300",
        LEASE: "60",
        f"{PREFIX}SLOTS": "4",
        f"{PREFIX}SESSION_LIMIT_SECONDS": "120",
        f"{PREFIX}BACKOFF_SECONDS": "10",
        f"{PREFIX}BACKOFF_LIMIT_SECONDS": "600",
        f"{PREFIX}FINALIZE_PER_MINUTE": "60",
        f"{PREFIX}SHUTDOWN_GRACE_SECONDS": "8",
        PROCESSOR: "extractive",
        f"{PREFIX}DELIVERY_TIMEOUT_SECONDS": "10",
        LOOPBACK: "false",
        DATA: UNSET,
        "SYNC_TASKS_PROJECT": UNSET,
        "SYNC_TASKS_LOCATION": UNSET,
        f"{PREFIX}FIREBASE_PROJECT": UNSET,
        CERTS: "https://www.googleapis.com/oauth2/v3/certs",
        f"{PREFIX}FIREBASE_CERTS_URL": (
            "https://www.googleapis.com/service_accounts/v1/jwk/"
            "securetoken@system.gserviceaccount.com"
        ),
        SCHEDULER: UNSET,
        f"{PREFIX}FIRESTORE_PROJECT": UNSET,
        DATABASE: "(default)",
        FIRESTORE: UNSET,
        EMULATOR: UNSET,
        LOCK_URL: UNSET,
        LOCK_TTL: "1800",
    }


def test_the_embedded_mode_has_defaults_of_its_own_and_needs_nothing_else() -> None:
    settings = Settings.from_environment(EMBEDDED)

    assert (settings.lease_seconds, settings.renewal_seconds) == (15, 5)
    assert (settings.backoff_seconds, settings.backoff_limit_seconds) == (1, 60)
    assert (settings.data_dir, settings.firebase_project) == (Path("data"), "local")
    assert settings.durable_mode
    assert not settings.worker_identity_configured


# Modes


def test_the_production_settings_of_the_seed_start() -> None:
    settings = Settings.from_environment(PRODUCTION)

    assert settings.dispatch_mode is DispatchMode.CLOUD_TASKS
    assert settings.durable_mode
    assert settings.worker_identity_configured


@pytest.mark.parametrize("missing", [QUEUE, HANDLER, AUDIENCE, INVOKER, "SYNC_TASKS_PROJECT"])
def test_half_a_queue_configuration_fails_and_names_what_is_missing(missing: str) -> None:
    env = {name: value for name, value in PRODUCTION.items() if name != missing}

    assert faults(env) == [f"{missing} is required with {MODE}=cloud_tasks"]


def test_a_bare_queue_mode_names_all_six_that_are_missing() -> None:
    assert [line.split()[0] for line in faults({MODE: "cloud_tasks"})] == [
        QUEUE,
        HANDLER,
        AUDIENCE,
        INVOKER,
        "SYNC_TASKS_PROJECT",
        "SYNC_TASKS_LOCATION",
    ]


@pytest.mark.parametrize("text", ["Inline", "INLINE", "cloud-tasks", "cloudtasks", "off", "none"])
def test_an_unknown_mode_is_refused(text: str) -> None:
    assert faults({MODE: text}) == [f"{MODE} must be inline or cloud_tasks or embedded"]


def test_a_blank_mode_is_not_the_default_mode() -> None:
    assert faults({MODE: ""}) == [f"{MODE} is blank: give it a value or remove it"]


@pytest.mark.parametrize("mode", ["inline", "embedded"])
@pytest.mark.parametrize("half", [AUDIENCE, INVOKER])
def test_half_an_identity_is_refused_in_every_mode(mode: str, half: str) -> None:
    env = {MODE: mode, half: PRODUCTION[half]}

    assert faults(env) == [f"{AUDIENCE} and {INVOKER} need each other"]


@pytest.mark.parametrize(("blank", "kept"), [(AUDIENCE, INVOKER), (INVOKER, AUDIENCE)])
@pytest.mark.parametrize("mode", ["inline", "embedded", "cloud_tasks"])
def test_a_blank_half_of_the_identity_never_skips_the_check(
    blank: str, kept: str, mode: str
) -> None:
    env = {**PRODUCTION, MODE: mode, blank: " ", kept: PRODUCTION[kept]}

    assert faults(env) == [f"{blank} is blank: give it a value or remove it"]


def test_a_change_of_mode_keeps_the_worker_identity() -> None:
    settings = Settings.from_environment({**PRODUCTION, MODE: "inline"})

    assert settings.worker_identity_configured
    assert not settings.durable_mode


def test_loopback_receivers_are_for_the_embedded_mode_alone() -> None:
    assert Settings.from_environment({**EMBEDDED, LOOPBACK: "true"}).admit_loopback_destinations
    for env in ({}, PRODUCTION):
        assert faults({**env, LOOPBACK: "true"}) == [f"{LOOPBACK}=true needs {MODE}=embedded"]
        assert not Settings.from_environment({**env, LOOPBACK: "false"}).admit_loopback_destinations


def test_the_embedded_mode_cannot_be_constructed_without_a_place_for_its_data() -> None:
    with pytest.raises(SettingsError, match=f"{DATA} is required with {MODE}=embedded"):
        Settings(dispatch_mode=DispatchMode.EMBEDDED)


# Texts

# fmt: off
REFUSED: dict[str, list[str]] = {
    QUEUE: [
        "sync-jobs", "audio-merge", "Sync-Jobs",
        "projects/omi/locations/us-central1/queues/sync-jobs", " conversation-finalization",
    ],
    HANDLER: [
        f"{RUN_URL}/", f"{RUN_URL}?a=1", f"{RUN_URL}?", f"{RUN_URL}#top", f"{RUN_URL}\n",
        RUN_URL.replace("https", "http"), RUN_URL.replace("https", "HTTPS"),
        RUN_URL.replace("worker", "user:secret@worker"), RUN_URL.replace("worker", "@worker"),
        RUN_URL.replace("worker", "Worker"), RUN_URL.replace("/v1", "//v1"),
        RUN_URL.replace("/run", "%2Frun"), RUN_URL.replace("/run", "/RUN"),
        RUN_URL.replace(".com", ".com:0"), RUN_URL.replace(".com", ".com:65536"),
        "https:///v1/conversation-finalization-jobs/run", "https://worker.example.com",
    ],
    AUDIENCE: ["two words", f"{RUN_URL} ", "https://w\u00f6rker.example.com", "a" * 2_049],
    INVOKER: [
        "tasks", "tasks@local", "Tasks@omi-prod.iam.gserviceaccount.com",
        "tasks@omi-prod.iam.gserviceaccount.com, b@c.de",
        "Tasks <tasks@omi-prod.iam.gserviceaccount.com>", "tasks@@omi-prod.iam.gserviceaccount.com",
    ],
    "SYNC_TASKS_PROJECT": ["projects/omi"],
    "SYNC_TASKS_LOCATION": ["US Central"],
    f"{PREFIX}FIREBASE_PROJECT": ["a/b"],
    PROCESSOR: ["package.module:", "package.module:Class()", "../module:Class", "a b"],
    DATA: ["~/data", "data ", "da\x00ta"],
    LOOPBACK: ["True", "1", "yes"],
    CERTS: [
        "http://www.googleapis.com/oauth2/v3/certs", "http://localhost.example.com/certs",
        "https://user@www.googleapis.com/certs", "https://www.googleapis.com/certs#keys",
        "file:///etc/keys.json",
    ],
    LOCK_URL: [
        "10.0.0.3:6379", "http://10.0.0.3", "unix:///run/redis.sock", "redis://", "redis:///0",
        "redis://Redis.example.com", "redis://10.0.0.3:0", "redis://10.0.0.3/jobs",
        "rediss://10.0.0.3/0?ssl_cert_reqs=none", "redis://10.0.0.3#0", "redis://10.0.0.3/0\n",
        "redis://:pass@word@10.0.0.3", "redis://:pass word@10.0.0.3", "redis://:50%@10.0.0.3",
        "redis://a:b:c@10.0.0.3",
    ],
}
TAKEN: dict[str, list[str]] = {
    QUEUE: ["conversation-finalization", "sync-jobs-2"],
    HANDLER: [RUN_URL.replace(".com", ".com:65535")],
    AUDIENCE: ["https://worker.example.com/"],
    INVOKER: ["123-compute@developer.gserviceaccount.com"],
    "SYNC_TASKS_PROJECT": ["example.com:omi-prod"],
    PROCESSOR: ["openai", "package.module:Class", "package:Outer.Inner"],
    DATA: ["/var/lib/listen finalization"],
    CERTS: [
        "http://127.0.0.1:49152/certs", "http://[::1]:8000/certs",
        "https://mirror.example.com/certs?kind=x",
    ],
    LOCK_URL: [
        "redis://localhost", "redis://127.0.0.1:49152/0", "redis://[::1]:6379/",
        "rediss://worker:p%40ss@redis.example.com:6380/15", "redis://:secret@10.0.0.3",
    ],
}
# fmt: on


def pairs(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, text) for name, texts in table.items() for text in texts]


@pytest.mark.parametrize(("name", "text"), pairs(REFUSED))
def test_a_text_that_cannot_work_is_refused(name: str, text: str) -> None:
    assert faults({**EMBEDDED, **PRODUCTION, MODE: "embedded", name: text}) == [refused(name)]


@pytest.mark.parametrize(("name", "text"), pairs(TAKEN))
def test_a_text_that_can_work_is_taken_as_it_is(name: str, text: str) -> None:
    settings = Settings.from_environment({**PRODUCTION, MODE: "embedded", name: text})

    [field] = [field for field, one in BY_FIELD.items() if one.name == name]
    assert str(getattr(settings, field)) == text


@pytest.mark.parametrize("one", SETTINGS, ids=lambda one: one.name)
def test_a_blank_value_is_never_taken_for_an_unset_one(one: Setting) -> None:
    for blank in ("", " ", "\t\n"):
        assert faults({**PRODUCTION, one.name: blank}) == [
            f"{one.name} is blank: give it a value or remove it"
        ]


# Names


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (f"{PREFIX}LEASE_SECOND", f"{PREFIX}LEASE_SECOND is not a setting; is it {LEASE}?"),
        (LEASE.lower(), f"{LEASE.lower()} is not a setting; is it {LEASE}?"),
        (f"HTTP_{PREFIX}RUN_TIMEOUTS", f"HTTP_{PREFIX}RUN_TIMEOUTS is not a setting; is it {RUN}?"),
        (f"{PREFIX}XYZ", f"{PREFIX}XYZ is not a setting"),
        (f"{PREFIX}A\nB\u00e9", rf"{PREFIX}A\nB\xe9 is not a setting"),
        (f"{PREFIX}SERVICE_HOSTS", f"{PREFIX}SERVICE_HOSTS is not a setting"),
        (f"{PREFIX}PORT", f"{PREFIX}PORT is not a setting"),
    ],
)
def test_a_name_that_starts_like_ours_and_is_none_is_refused(name: str, said: str) -> None:
    assert faults({name: CANARY}) == [said]


def test_foreign_names_are_nobody_s_business() -> None:
    Settings.from_environment({"SYNC_TASKS_QUEUE": "x", "PATH": "/bin", "LISTEN": "", "HTTP_X": ""})


def test_names_that_kubernetes_makes_of_a_service_are_not_taken_for_typos() -> None:
    names = ["SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_8080_TCP"]
    names += ["PORT_8080_TCP_PROTO", "PORT_8080_TCP_PORT", "PORT_8080_TCP_ADDR"]

    for service in ("LISTEN_FINALIZATION", "LISTEN_FINALIZATION_PUSHER"):
        Settings.from_environment({f"{service}_{name}": "10.0.0.1" for name in names})


# Consistency


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({LEASE: "1501"}, f"{LEASE} (1501) <= {RUN} (1500) does not hold"),
        ({RUN: "30", DEADLINE: "20"}, f"{RUN} (30) <= {DEADLINE} (20) does not hold"),
        (
            {STALE: "29"},
            f"{STALE} (29) >= the least with {MODE}=cloud_tasks (30) does not hold",
        ),
        (
            {f"{PREFIX}BACKOFF_SECONDS": "700"},
            f"{PREFIX}BACKOFF_SECONDS (700) <= {PREFIX}BACKOFF_LIMIT_SECONDS (600) does not hold",
        ),
    ],
)
def test_settings_that_cannot_work_together_name_both_and_the_inequality(
    env: dict[str, str], said: str
) -> None:
    assert said in faults({**PRODUCTION, **env})


@pytest.mark.parametrize("mode", [{}, EMBEDDED, PRODUCTION])
def test_a_run_lock_outlives_the_longest_run_wherever_there_is_one(mode: dict[str, str]) -> None:
    env = {**mode, RUN: "1800"}
    locked = {**env, LOCK_URL: "redis://10.0.0.3"}

    assert faults(locked) == [f"{RUN} (1800) < {LOCK_TTL} (1800) does not hold"]
    assert Settings.from_environment({**locked, LOCK_TTL: "1801"}).run_lock_ttl_seconds == 1801
    assert Settings.from_environment(env).run_lock_url is None


def test_a_deadline_over_that_of_cloud_tasks_is_refused_in_every_form() -> None:
    assert faults({DEADLINE: "1801"}) == [refused(DEADLINE)]
    with pytest.raises(SettingsError, match=DEADLINE):
        Settings(tasks_dispatch_deadline_seconds=1800.5)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    env = {**PRODUCTION, QUEUE: "sync-jobs", LEASE: "1600", STALE: "5", f"{PREFIX}SLOT": "4"}
    del env[INVOKER]

    assert faults(env) == [
        f"{PREFIX}SLOT is not a setting; is it {PREFIX}SLOTS?",
        refused(QUEUE),
        f"{LEASE} (1600) <= {RUN} (1500) does not hold",
        f"{STALE} (5) >= the least with {MODE}=cloud_tasks (30) does not hold",
        f"{INVOKER} is required with {MODE}=cloud_tasks",
    ]


def test_a_refused_number_is_not_blamed_a_second_time_by_its_inequalities() -> None:
    assert faults({RUN: "2000", LEASE: "1700"}) == [refused(RUN)]


def test_code_may_use_times_shorter_than_the_environment_may_ask_for() -> None:
    settings = replace(Settings.from_environment(EMBEDDED), lease_seconds=0.3, backoff_seconds=0.01)

    assert settings.renewal_seconds == pytest.approx(0.1)
    assert settings.policy().lease == 300_000
    assert settings.policy().backoff == 10_000


def test_code_is_held_to_the_inequalities_too() -> None:
    with pytest.raises(SettingsError, match="does not hold"):
        Settings(lease_seconds=10, run_timeout_seconds=9.5, delivery_timeout_seconds=1)


@pytest.mark.parametrize(
    "values",
    [
        {"dispatch_mode": "embedded"},
        {"dispatch_mode": None},
        {"slots": 2.5},
        {"slots": True},
        {"data_dir": "data"},
        {"admit_loopback_destinations": 1},
        {"tasks_queue": "sync-jobs"},
        {"tasks_queue": 7},
        {"lease_seconds": None},
    ],
)
def test_code_cannot_construct_with_a_value_of_another_type(values: dict[str, object]) -> None:
    [name] = [BY_FIELD[field].name for field in values]

    with pytest.raises(SettingsError, match=f"^settings that cannot work:\n- {name} must be"):
        Settings(**values)  # type: ignore[arg-type]


def test_every_inequality_of_a_configuration_can_be_shown() -> None:
    shown = Settings.from_environment(PRODUCTION).inequalities()

    assert all(one.holds for one in shown)
    assert f"{RUN} (1500) <= {DEADLINE} (1800)" in [one.text for one in shown]


# What is shown


def test_described_tells_every_setting_once_with_its_source() -> None:
    lines = Settings.from_environment({**EMBEDDED, LEASE: "15", DATA: "/srv/x"}).described()

    assert [line.name for line in lines] == [one.name for one in SETTINGS]
    told = {line.name: line for line in lines}
    assert told[MODE] == Described(MODE, "embedded", "environment")
    assert told[LEASE] == Described(LEASE, "15", "environment")
    assert told[STALE] == Described(STALE, "300", "default")
    assert told[DATA] == Described(DATA, MASKED, "environment")


def test_defaults_of_the_caller_stand_in_and_give_way() -> None:
    defaults = {**EMBEDDED, DATA: f"/srv/{CANARY}", LEASE: "20"}
    settings = Settings.from_environment({LEASE: "30"}, defaults=defaults)

    told = {line.name: line for line in settings.described()}
    assert settings.dispatch_mode is DispatchMode.EMBEDDED
    assert told[LEASE] == Described(LEASE, "30", "environment")
    assert told[DATA] == Described(DATA, MASKED, "default")
    with pytest.raises(SettingsError, match=LEASE):
        Settings.from_environment({LEASE: ""}, defaults=defaults)


SECRETS = {
    QUEUE: CANARY,
    HANDLER: RUN_URL.replace("worker", CANARY),
    AUDIENCE: CANARY,
    INVOKER: f"{CANARY}@omi.iam.gserviceaccount.com",
    PROCESSOR: CANARY,
    DATA: CANARY,
    "SYNC_TASKS_PROJECT": CANARY,
    "SYNC_TASKS_LOCATION": CANARY,
    f"{PREFIX}FIREBASE_PROJECT": CANARY,
    CERTS: f"https://{CANARY}.example.com/{CANARY}",
    f"{PREFIX}FIREBASE_CERTS_URL": f"https://example.com/?key={CANARY}",
    SCHEDULER: f"{CANARY}@omi.iam.gserviceaccount.com",
    f"{PREFIX}FIRESTORE_PROJECT": CANARY,
    DATABASE: CANARY,
    LOCK_URL: f"rediss://{CANARY}:{CANARY}@{CANARY}.example.com:6380/1",
}


def test_no_free_text_is_ever_shown() -> None:
    settings = Settings.from_environment({**PRODUCTION, **SECRETS})

    assert {one.name for one in SETTINGS if one.secret} == set(SECRETS)
    assert {line.name for line in settings.described() if line.value == MASKED} == set(SECRETS)
    for text in (repr(settings), str(settings), str(settings.described())):
        assert CANARY not in text


@pytest.mark.parametrize("one", SETTINGS, ids=lambda one: one.name)
@pytest.mark.parametrize("text", [f" {CANARY} {CANARY}", f"\uff11{CANARY}\n", f"~{CANARY}\x7f"])
def test_a_refused_value_is_never_told(one: Setting, text: str) -> None:
    said = faults({**PRODUCTION, **SECRETS, one.name: text})

    assert said == [refused(one.name)]
    assert CANARY not in str(said)


def test_a_missing_part_is_told_without_the_values_of_the_others() -> None:
    env = {**PRODUCTION, **SECRETS, LOOPBACK: "true", STALE: "5"}
    del env[AUDIENCE]

    said = faults(env)
    assert len(said) == 4
    assert CANARY not in str(said)


# Production


def test_plain_http_leads_to_a_worker_only_beside_a_queue_of_this_machine() -> None:
    local = RUN_URL.replace("https://worker.example.com", "http://127.0.0.1:8081")
    said = faults({**PRODUCTION, HANDLER: local})
    assert said == [f"{HANDLER} must be https without {EMULATOR}"]

    settings = Settings.from_environment({**PRODUCTION, HANDLER: local, EMULATOR: "127.0.0.1:8123"})
    assert settings.tasks_handler_url == local
    assert settings.tasks_emulator == "127.0.0.1:8123"


@pytest.mark.parametrize(
    "text", ["tasks.example.com:8123", "127.0.0.1", "http://127.0.0.1:8123", "0.0.0.0:8123", ":1"]
)
@pytest.mark.parametrize("name", [EMULATOR, FIRESTORE])
def test_a_server_of_another_machine_is_no_emulator(name: str, text: str) -> None:
    assert faults({**PRODUCTION, name: text}) == [refused(name)]


def test_a_scheduler_needs_the_audience_of_the_worker() -> None:
    said = faults({SCHEDULER: "scheduler@omi.iam.gserviceaccount.com"})
    assert said == [f"{SCHEDULER} needs {AUDIENCE}"]


def test_the_database_lies_in_the_project_of_the_queue_unless_it_is_named() -> None:
    assert Settings().store_project is None
    assert Settings.from_environment(PRODUCTION).store_project == PRODUCTION["SYNC_TASKS_PROJECT"]
    env = {**PRODUCTION, f"{PREFIX}FIRESTORE_PROJECT": "people"}
    assert Settings.from_environment(env).store_project == "people"


def test_the_full_name_of_the_queue_is_made_of_its_three_settings() -> None:
    settings = Settings.from_environment(PRODUCTION)
    project, location = PRODUCTION["SYNC_TASKS_PROJECT"], PRODUCTION["SYNC_TASKS_LOCATION"]
    queue = PRODUCTION[QUEUE]
    assert settings.queue_path == f"projects/{project}/locations/{location}/queues/{queue}"


# Policy


def test_the_policy_of_the_defaults_is_the_policy_of_the_contract() -> None:
    assert Settings().policy() == Policy()
    assert Settings.from_environment(PRODUCTION).policy() == Policy()


def test_the_policy_of_the_embedded_mode_hands_over_and_retries_at_once() -> None:
    assert Settings.from_environment(EMBEDDED).policy() == Policy(
        lease=seconds(15),
        handover=0,
        retry_floor=0,
        backoff=seconds(1),
        backoff_limit=seconds(60),
    )


def test_the_longest_stale_time_is_not_silently_cut_by_the_policy() -> None:
    [stale] = [one for one in SETTINGS if one.name == STALE]
    policy = Settings(reconcile_stale_seconds=stale.high).policy()

    assert policy.handover_delay(1) == seconds(stale.high)


def test_every_number_of_the_policy_comes_from_its_setting() -> None:
    env = {
        f"{PREFIX}TASKS_MAX_ATTEMPTS": "7",
        STALE: "31",
        LEASE: "33",
        f"{PREFIX}BACKOFF_SECONDS": "3",
        f"{PREFIX}BACKOFF_LIMIT_SECONDS": "44",
        f"{PREFIX}SESSION_LIMIT_SECONDS": "55",
    }
    assert Settings.from_environment(env).policy() == Policy(
        lease=seconds(33),
        max_attempts=7,
        handover=seconds(31),
        retry_floor=seconds(31),
        backoff=seconds(3),
        backoff_limit=seconds(44),
        session_limit=seconds(55),
    )
