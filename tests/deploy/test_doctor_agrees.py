"""What Terraform gives the worker is what the doctor expects of its settings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from listen_finalization.operate.checks.check import Case
from listen_finalization.operate.deployed import read_deployed
from listen_finalization.operate.doctor import CHECKS
from listen_finalization.operate.facts import Missing, Seen
from listen_finalization.operate.findings import Verdict
from listen_finalization.settings import Settings

from .deployment import DEPLOY, evaluate, read_settings


def test_the_worker_of_the_shipped_files_has_the_settings_that_doctor_expects(
    tmp_path: Path,
) -> None:
    environment = evaluate(read_settings(), tmp_path / "made")["environment"]["worker"]
    own = tmp_path / "deploy"
    shutil.copytree(DEPLOY / "firestore", own / "firestore")
    (own / "production.json").write_text(json.dumps(read_settings()))
    case = Case(read_deployed(own, "production"), Settings.from_environment(environment))
    nothing = Seen(**dict.fromkeys(Seen.__slots__, Missing()))
    codes = [code for code in CHECKS if code.startswith("settings_")]
    ended = {code: CHECKS[code].find(case, nothing) for code in codes}
    assert {code: one and one.verdict for code, one in ended.items()} == dict.fromkeys(
        codes, Verdict.OK
    )
