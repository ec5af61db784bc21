"""What a person types against a finding; names come from the deploy files alone."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from listen_finalization.operate.deployed import Deployed
from listen_finalization.operate.facts import Blind

_AGAIN = "run doctor again in a moment"
_REASONS: Mapping[Blind, str] = {
    Blind.FORBIDDEN: "not looked at: this account may not read it",
    Blind.API_DISABLED: "not looked at: its API is not enabled in the project",
    Blind.NO_CREDENTIALS: "not looked at: no account to ask Google with",
    Blind.NOT_OFFERED: "not looked at: the server does not offer it",
    Blind.UNREACHABLE: "not looked at: the server was not reached",
    Blind.TIMED_OUT: "not looked at: no answer within the deadline",
    Blind.ODD_ANSWER: "not looked at: the answer was not understood",
    Blind.EXTRA_MISSING: "not looked at: an extra of this package is not installed",
}


def reason(why: Blind) -> str:
    """Return why a check could not look, for people."""
    return _REASONS[why]


def remedy_of(why: Blind, deployed: Deployed, *, role: str, api: str, extra: str) -> str:
    """Return what makes a check see: `role`, `api` and `extra` are what it needs for that."""
    match why:
        case Blind.FORBIDDEN if role:
            return f"{role} is needed: {_granted(deployed, role)}"
        case Blind.API_DISABLED if api:
            return f"gcloud services enable {api} --project={_quoted(deployed.project)}"
        case Blind.NO_CREDENTIALS:
            return "gcloud auth application-default login"
        case Blind.NOT_OFFERED:
            return "a server for development has no accounts; unset CLOUD_TASKS_EMULATOR_HOST"
        case Blind.TIMED_OUT:
            return "run doctor again with a longer --deadline"
        case Blind.EXTRA_MISSING:
            return f"pip install 'listen-finalization[{extra}]'"
    return _AGAIN


def _granted(deployed: Deployed, role: str) -> str:
    project = _quoted(deployed.project)
    member = '--member="user:$(gcloud config get-value account)"'
    return f"gcloud projects add-iam-policy-binding {project} {member} --role={role}"


def apply(deployed: Deployed) -> str:
    """Return the command that makes the project what the deploy files say."""
    return (
        f"terraform -chdir={_terraform(deployed)} apply "
        f'-var settings_file=../{deployed.environment}.json -var release="$RELEASE"'
    )


def exports(deployed: Deployed) -> str:
    """Return the command that gives this shell the worker's settings."""
    return f'eval "$(terraform -chdir={_terraform(deployed)} output -raw worker_exports)"'


def _terraform(deployed: Deployed) -> str:
    return _quoted(f"{deployed.directory.rstrip('/')}/terraform")


def resume_queue(deployed: Deployed) -> str:
    """Return the command that lets a stopped queue go on."""
    name = deployed.queue.name if deployed.queue is not None else ""
    place = f"--location={_quoted(deployed.location)} --project={_quoted(deployed.project)}"
    return f"gcloud tasks queues resume {_quoted(name)} {place}"


def worker_logs(deployed: Deployed) -> str:
    """Return the command that shows what the worker says."""
    name = deployed.worker.name if deployed.worker is not None else ""
    place = f"--region={_quoted(deployed.location)} --project={_quoted(deployed.project)}"
    return f"gcloud run services logs read {_quoted(name)} {place}"


def _quoted(name: str) -> str:
    return shlex.quote(name)
