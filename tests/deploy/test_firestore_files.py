"""Indexes, exemptions and retention: the files, and what Terraform makes of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from deploy.deployment import DEPLOY, RefusedError, evaluate, parsed, read_settings
from listen_finalization.domain.policy import Policy

JOBS = "conversation_finalization_jobs"
RESULTS = "conversation_finalization_results"
ROWS = "conversation_finalization_rows"
INDEX_FILE = json.loads((DEPLOY / "firestore" / "indexes.json").read_text("utf-8"))
TTL = json.loads((DEPLOY / "firestore" / "ttl.json").read_text("utf-8"))


def test_rows_expire_by_their_completion_after_the_retention_of_the_code() -> None:
    assert {
        "collectionGroup": JOBS,
        "fieldPath": "completed_at",
        "expirationOffset": f"{Policy().retention // 1_000_000}s",
    } == TTL


def test_the_index_file_sets_no_retention() -> None:
    """Its format knows no offset: rows would go on the day on which they were completed."""
    assert not any("ttl" in override for override in INDEX_FILE["fieldOverrides"])


def test_what_no_query_uses_is_not_indexed() -> None:
    overrides = {
        (override["collectionGroup"], override["fieldPath"]): override["indexes"]
        for override in INDEX_FILE["fieldOverrides"]
    }

    assert overrides[JOBS, "*"] == []
    assert overrides[RESULTS, "*"] == []
    assert overrides[ROWS, "*"] == []
    assert not overrides.keys() & {(JOBS, "effects"), (JOBS, "history")}


def test_no_other_collection_is_touched() -> None:
    entries = [*INDEX_FILE["indexes"], *INDEX_FILE["fieldOverrides"], TTL]

    assert {entry["collectionGroup"] for entry in entries} == {JOBS, RESULTS, ROWS}


def test_terraform_has_every_index_and_every_field_of_the_files(tmp_path: Path) -> None:
    outputs = evaluate(read_settings(), tmp_path)

    assert list(outputs["indexes"].values()) == sorted(
        INDEX_FILE["indexes"], key=lambda index: str(index["fields"])
    )
    fields = outputs["fields"]
    expiring = {f["field"]: f["expirationOffset"] for f in fields.values() if f["expirationOffset"]}
    assert expiring == {TTL["fieldPath"]: TTL["expirationOffset"]}
    assert fields.keys() == {
        f"{JOBS} completed_at",
        *(f"{o['collectionGroup']} {o['fieldPath']}" for o in INDEX_FILE["fieldOverrides"]),
    }


def test_an_index_file_that_grows_reaches_terraform(tmp_path: Path) -> None:
    files = tmp_path / "deploy"
    shutil.copytree(DEPLOY / "terraform" / "settings", files / "terraform" / "settings")
    shutil.copytree(DEPLOY / "firestore", files / "firestore")
    more = {"collectionGroup": JOBS, "fieldPath": "uid", "indexes": []}
    grown = INDEX_FILE | {"fieldOverrides": [*INDEX_FILE["fieldOverrides"], more]}
    (files / "firestore" / "indexes.json").write_text(json.dumps(grown), "utf-8")

    outputs = evaluate(read_settings(), tmp_path / "run", files)

    assert outputs["fields"][f"{JOBS} uid"] == {
        "collection": JOBS,
        "field": "uid",
        "indexes": [],
        "expirationOffset": None,
    }


@pytest.mark.parametrize("changes", [{"expirationOffset": "0s"}, {"fieldPath": "updated_at"}])
def test_a_retention_that_loses_rows_is_refused(tmp_path: Path, changes: dict[str, str]) -> None:
    files = tmp_path / "deploy"
    shutil.copytree(DEPLOY / "terraform" / "settings", files / "terraform" / "settings")
    shutil.copytree(DEPLOY / "firestore", files / "firestore")
    (files / "firestore" / "ttl.json").write_text(json.dumps(TTL | changes), "utf-8")

    with pytest.raises(RefusedError, match="Rows expire by completed_at"):
        evaluate(read_settings(), tmp_path / "run", files)


def test_an_empty_list_takes_a_field_out_of_all_indexes() -> None:
    field = parsed("firestore.tf")["google_firestore_field"]["jobs"]
    [index_config], [ttl] = field["index_config"], field["dynamic"]

    assert list(index_config) == ["dynamic"]
    assert ttl["ttl_config"]["content"] == [{"expiration_offset": "${ttl_config.value}"}]
