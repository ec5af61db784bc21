"""`jobs` reads what a stack left, shows no content, and leaves the directory as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from listen_finalization.cli import job_views, jobs
from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.printing import print_fields, print_table
from listen_finalization.domain.codes import Status
from listen_finalization.domain.explain import Facts, Presence, explain

from .conftest import Ran
from .jobs_at_hand import ALL, BLOCKED, COMPLETED, DEAD, FAILED_ONCE, LEASED, NOW, QUEUED
from .jobs_at_hand import directory_with as stored

Cli = Callable[..., Ran]
Golden = Callable[[str, str], None]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return stored(tmp_path / "data", ALL)


def test_a_list_is_as_agreed(golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    print_table(job_views.COLUMNS, [job_views.row(job, NOW) for job in ALL])
    golden("jobs-list", capsys.readouterr().out)


def test_a_shown_job_is_as_agreed(golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    print_fields(job_views.fields(COMPLETED, NOW))
    golden("jobs-show", capsys.readouterr().out)


def test_a_history_is_as_agreed(golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [job_views.history_row(entry, NOW) for entry in FAILED_ONCE.history]
    print_table(job_views.HISTORY_COLUMNS, rows)
    golden("jobs-history", capsys.readouterr().out)


@pytest.mark.parametrize("job", ALL, ids=lambda job: job.job_id[-1])
@pytest.mark.parametrize("presence", [Presence.RUNS, Presence.ABSENT])
def test_an_explanation_is_as_agreed(
    job: object, presence: Presence, golden: Golden, capsys: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(job, type(QUEUED))
    facts = Facts(job, NOW, 5, dispatcher=presence)
    found = explain(facts)
    jobs._tell(facts, found, jobs.typed(found.next, job, "./data"))
    golden(f"jobs-explain-{job.job_id[-1]}-{presence}", capsys.readouterr().out)


def test_a_list_is_newest_first_and_can_be_continued(data: Path, cli: Cli) -> None:
    seen: list[str] = []
    cursor: list[str] = []
    for _ in range(3):
        page = json.loads(
            cli("jobs", "list", "--data", data, "--limit", 2, *cursor, "-o", "json").out
        )
        seen += [job["job_id"] for job in page["jobs"]]
        cursor = ["--cursor", page["cursor"] or ""]
    assert seen == [job.job_id for job in sorted(ALL, key=lambda job: -job.created_at)]
    assert page["cursor"] is None


def test_a_list_can_be_of_one_status(data: Path, cli: Cli) -> None:
    for job in ALL:
        ran = cli("jobs", "list", "--data", data, "--status", job.status, "-o", "json")
        found = {one["job_id"] for one in json.loads(ran.out)["jobs"]}
        assert found == {one.job_id for one in ALL if one.status is job.status}


def test_the_table_tells_how_to_go_on_beside_it(data: Path, cli: Cli) -> None:
    ran = cli("jobs", "list", "--data", data, "--limit", 1)
    assert len(ran.out.splitlines()) == 2
    assert ran.err.startswith("more: --cursor ")


@pytest.mark.parametrize("verb", ["show", "history", "explain"])
def test_each_verb_has_one_json_document_in_ascii(verb: str, data: Path, cli: Cli) -> None:
    for job in ALL:
        ran = cli("jobs", verb, job.job_id, "--data", data, "-o", "json")
        assert (ran.code, ran.err) == (ExitCode.OK, "")
        assert ran.out.isascii()
        assert json.loads(ran.out)["job_id"] == job.job_id


@pytest.mark.parametrize("verb", ["show", "history", "explain"])
def test_an_unknown_job_is_refused(verb: str, data: Path, cli: Cli) -> None:
    ran = cli("jobs", verb, "\x1b[31mno-such-job", "--data", data)
    assert (ran.code, ran.out) == (ExitCode.REFUSED, "")
    assert "\x1b" not in ran.err


def test_no_claim_id_is_shown(data: Path, cli: Cli) -> None:
    assert LEASED.claim_id is not None
    for verb in (["list"], ["show", LEASED.job_id], ["history", LEASED.job_id]):
        for output in ("table", "json"):
            assert LEASED.claim_id not in cli("jobs", *verb, "--data", data, "-o", output).out


def test_reading_leaves_the_directory_as_it_is(data: Path, cli: Cli) -> None:
    before = {path.name: path.read_bytes() for path in data.iterdir()}
    for verb in (["list"], ["show", DEAD.job_id], ["explain", LEASED.job_id]):
        assert cli("jobs", *verb, "--data", data).code == ExitCode.OK
    assert {path.name: path.read_bytes() for path in data.iterdir()} == before
    assert set(before) == {"listen.db"}


@pytest.mark.parametrize("verb", [["list"], ["show", "x"], ["history", "x"], ["explain", "x"]])
def test_a_directory_without_a_store_is_named_and_not_made(
    verb: list[str], tmp_path: Path, cli: Cli
) -> None:
    ran = cli("jobs", *verb, "--data", tmp_path / "nothing")
    assert (ran.code, ran.out) == (ExitCode.UNAVAILABLE, "")
    assert "no data directory of a stack" in ran.err
    assert not (tmp_path / "nothing").exists()


def test_a_file_that_is_no_store_is_told_in_one_line(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "listen.db").write_bytes(b"this is not a database" * 100)
    ran = cli("jobs", "list", "--data", tmp_path)
    assert ran.code == ExitCode.UNAVAILABLE
    assert len(ran.err.splitlines()) == 2


def test_the_directory_comes_from_the_environment_when_it_is_not_given(
    data: Path, cli: Cli
) -> None:
    assert cli("jobs", "list", env={"LISTEN_FINALIZATION_DATA_DIR": str(data)}).code == ExitCode.OK
    blank = cli("jobs", "list", env={"LISTEN_FINALIZATION_DATA_DIR": " "})
    assert blank.code == ExitCode.USAGE


def test_hostile_ids_are_shown_harmlessly(tmp_path: Path, cli: Cli) -> None:
    hostile = "<script>\u009b31m\u202e\U000e0041[red]"
    job = replace(QUEUED, uid=hostile, conversation_id=hostile)
    data = stored(tmp_path / "data", [job])
    for verb in (["list"], ["show", job.job_id], ["explain", job.job_id]):
        for output in ("table", "json"):
            out = cli("jobs", *verb, "--data", data, "-o", output).out
            assert not {"\u009b", "\u202e", "\U000e0041"} & set(out)


def test_explain_sees_that_nobody_dispatches_and_that_the_owner_is_dead(
    data: Path, cli: Cli
) -> None:
    ran = cli("jobs", "explain", LEASED.job_id, "--data", data, "-o", "json")
    told = [one["reason"] for one in json.loads(ran.out)["reasons"]]
    assert told[:2] == ["nobody_dispatches", "owner_dead"]
    assert json.loads(ran.out)["next_command"] == f"listen-finalization up --data {data}"


def test_explain_reads_the_budget_and_no_other_setting(data: Path, cli: Cli) -> None:
    env = {"LISTEN_FINALIZATION_TASKS_MAX_ATTEMPTS": "1", "LISTEN_FINALIZATION_SLOTS": "broken"}
    ran = cli("jobs", "explain", FAILED_ONCE.job_id, "--data", data, "-o", "json", env=env)
    assert "budget_spent" in [one["reason"] for one in json.loads(ran.out)["reasons"]]


def test_a_job_that_waits_for_keys_names_the_user_and_no_platform_key(data: Path, cli: Cli) -> None:
    out = cli("jobs", "explain", BLOCKED.job_id, "--data", data).out
    assert "never runs on the platform's keys" in out
    assert "Who can move it: user." in out
    assert BLOCKED.status is Status.BLOCKED_BYOK
