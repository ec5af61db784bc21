"""`check`, `destinations`, `token`: what they show, what they keep to themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from listen_finalization.auth.issuer import LocalIssuer
from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.settings import SETTINGS

from .conftest import Ran
from .jobs_at_hand import directory_with

Cli = Callable[..., Ran]
ADDRESS = "https://hooks.example.com/canary-path-81aa?key=canary-key-81aa"


def test_check_is_as_agreed(cli: Cli, golden: Callable[[str, str], None]) -> None:
    golden("check", cli("check", "--embedded").out)


def test_check_tells_every_setting_with_its_source_and_masks_free_text(cli: Cli) -> None:
    env = {"LISTEN_FINALIZATION_SLOTS": "7", "LISTEN_FINALIZATION_DATA_DIR": "/canary-9d1c"}
    ran = cli("check", "--embedded", "-o", "json", env=env)
    told = json.loads(ran.out)
    assert ran.code == ExitCode.OK
    assert told["ok"] is True
    found = {one["name"]: (one["value"], one["source"]) for one in told["settings"]}
    assert list(found) == [one.name for one in SETTINGS]
    assert found["LISTEN_FINALIZATION_SLOTS"] == ("7", "environment")
    assert found["LISTEN_FINALIZATION_DATA_DIR"] == ("set, not shown", "environment")
    assert "canary" not in ran.out
    assert all(one["holds"] for one in told["inequalities"])
    assert {"left", "relation", "right", "holds"} == set(told["inequalities"][0])


@pytest.mark.parametrize("output", ["table", "json"])
def test_check_exits_with_one_and_names_what_is_wrong(output: str, cli: Cli) -> None:
    env = {
        "LISTEN_FINALIZATION_LEASE_SECONDS": "1600",
        "LISTEN_FINALIZATION_TASKS_QUEUE": "canary queue 77",
    }
    ran = cli("check", "-o", output, env=env)
    assert ran.code == ExitCode.UNFINISHED
    assert "LISTEN_FINALIZATION_LEASE_SECONDS (1600) <= HTTP_LISTEN_FINALIZATION_RUN_TIMEOUT" in (
        ran.err
    )
    assert "canary" not in ran.out + ran.err
    assert ran.out == "" or json.loads(ran.out)["ok"] is False


def test_a_destination_is_added_listed_by_host_and_removed(cli: Cli, tmp_path: Path) -> None:
    data = ("--data", tmp_path / "data")
    added = cli("destinations", "add", "crm", ADDRESS, *data)
    assert added.code == ExitCode.OK
    secret = added.out.split("shown this once: ")[1].strip()
    assert secret.startswith("whsec_")
    listed = cli("destinations", "list", *data)
    assert [line.split() for line in listed.out.splitlines()] == [
        ["ID", "HOST"],
        ["crm", "hooks.example.com"],
    ]
    in_json = cli("destinations", "list", *data, "-o", "json")
    assert json.loads(in_json.out)["destinations"] == [{"id": "crm", "host": "hooks.example.com"}]
    for ran in (added, listed, in_json):
        assert "canary" not in ran.out + ran.err
    assert secret not in listed.out + in_json.out
    assert cli("destinations", "remove", "crm", *data).code == ExitCode.OK
    assert cli("destinations", "remove", "crm", *data).code == ExitCode.REFUSED
    assert cli("destinations", "list", *data).out.split() == ["ID", "HOST"]


def test_an_address_can_be_kept_out_of_the_process_list(cli: Cli, tmp_path: Path) -> None:
    data = ("--data", tmp_path / "data")
    ran = cli("destinations", "add", "crm", "-", *data, "-o", "json", typed=f"{ADDRESS}\n")
    assert (ran.code, json.loads(ran.out)["host"]) == (ExitCode.OK, "hooks.example.com")


def test_a_directory_of_destinations_holds_no_key_and_is_private(cli: Cli, tmp_path: Path) -> None:
    cli("destinations", "add", "crm", ADDRESS, "--data", tmp_path / "data")
    assert not list((tmp_path / "data").glob("*.pem"))
    assert (tmp_path / "data").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "address", ["http://canary.example.com", "https://10.0.0.1/canary", "canary", "file:///canary"]
)
def test_an_address_that_deliveries_may_not_go_to_is_refused_unseen(
    address: str, cli: Cli, tmp_path: Path
) -> None:
    ran = cli("destinations", "add", "crm", address, "--data", tmp_path / "data")
    assert ran.code == ExitCode.USAGE
    assert "canary" not in ran.out + ran.err
    assert not (tmp_path / "data").exists()


def test_a_loopback_address_comes_with_the_setting_that_it_needs(cli: Cli, tmp_path: Path) -> None:
    add = ("destinations", "add", "crm", "http://127.0.0.1:9/x", "--data", tmp_path / "data")
    admitted = {"LISTEN_FINALIZATION_ADMIT_LOOPBACK_DESTINATIONS": "true"}
    assert "ADMIT_LOOPBACK_DESTINATIONS=true" in cli(*add).err
    assert cli(*add, env=admitted).err == ""


def test_a_bad_destination_id_is_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    ran = cli("destinations", "add", "a b", ADDRESS, "--data", tmp_path / "data")
    assert ran.code == ExitCode.USAGE


def test_a_token_is_printed_alone_and_only_where_a_stack_made_its_key(
    cli: Cli, tmp_path: Path
) -> None:
    data = directory_with(tmp_path / "data", [])
    refused = cli("token", "--data", data)
    assert (refused.code, refused.out) == (ExitCode.UNAVAILABLE, "")
    assert not list(data.glob("*.pem"))
    LocalIssuer.open(data, "users")
    ran = cli("token", "--data", data, "--uid", "ada")
    assert ran.code == ExitCode.OK
    assert ran.out.count(".") == 2
    assert len(ran.out.split()) == 1
