"""IAM policies of accounts, service and project, through their REST APIs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from listen_finalization.operate.facts import Look, Policy
from listen_finalization.operate.google import parsed
from listen_finalization.operate.probes.reach import Reach

_VERSION = {"options.requestedPolicyVersion": "3"}
"""Below version 3, a conditional binding is told as if it had no condition."""


async def look_at_invoker_policy(reach: Reach) -> Look[Policy]:
    """Return who may act as the invoker."""
    email = reach.deployed.email("invoker")
    place = f"{reach.google.at.iam}/v1/projects/{reach.deployed.project}/serviceAccounts/{email}"
    return parsed(await reach.google.post(f"{place}:getIamPolicy", {}, **_VERSION), policy)


async def look_at_worker_policy(reach: Reach) -> Look[Policy]:
    """Return who may call the worker."""
    place = f"{reach.google.at.run}/v2/{worker_name(reach)}"
    return parsed(await reach.google.get(f"{place}:getIamPolicy", **_VERSION), policy)


async def look_at_project_policy(reach: Reach) -> Look[Policy]:
    """Return who has which role on the whole project."""
    place = f"{reach.google.at.projects}/v3/projects/{reach.deployed.project}"
    body = {"options": {"requestedPolicyVersion": 3}}
    return parsed(await reach.google.post(f"{place}:getIamPolicy", body), policy)


def worker_name(reach: Reach) -> str:
    """Return the full name of the worker's service."""
    deployed = reach.deployed
    name = deployed.worker.name if deployed.worker is not None else ""
    return f"projects/{deployed.project}/locations/{deployed.location}/services/{name}"


def policy(document: Mapping[str, Any]) -> Policy:
    """Return the unconditional bindings of a policy document (google.iam.v1.Policy)."""
    return Policy(
        frozenset(
            (str(binding["role"]), str(member))
            for binding in document.get("bindings", [])
            if "condition" not in binding
            for member in binding["members"]
        )
    )
