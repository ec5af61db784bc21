"""The worker's service and its route, seen from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import httpx

from listen_finalization.operate import remedies
from listen_finalization.operate.checks.check import Case, Check
from listen_finalization.operate.deployed import DeployedService
from listen_finalization.operate.facts import Answer, HandlerFacts, ServiceFacts
from listen_finalization.operate.findings import Code, Said, failed, fine, warned
from listen_finalization.settings import BY_FIELD, RUN_PATH

T = TypeVar("T")

_INGRESS: Mapping[str, str] = {
    "all": "INGRESS_TRAFFIC_ALL",
    "internal": "INGRESS_TRAFFIC_INTERNAL_ONLY",
}
_AUDIENCE = BY_FIELD["tasks_oidc_audience"].name
_OFF, _ON = "off: the worker checks tokens itself", "on: tokens arrive without their signature"


def _of_worker(say: Callable[[Case, DeployedService], str]) -> Callable[[Case], str | None]:
    def expected(case: Case) -> str | None:
        return None if case.deployed.worker is None else say(case, case.deployed.worker)

    return expected


def _row(
    code: Code,
    expected: Callable[[Case, DeployedService], str],
    found: Callable[[Case, ServiceFacts], str],
    **more: Any,
) -> Check[ServiceFacts]:
    """Return a check that the service's own words are the expected ones."""
    wanted = _of_worker(expected)

    def judge(case: Case, service: ServiceFacts) -> Said:
        told = found(case, service)
        if told == wanted(case):
            return fine(told)
        return failed(told, remedies.apply(case.deployed))

    return Check(
        code=code,
        sight=lambda seen: seen.worker,
        expected=wanted,
        judge=judge,
        role="roles/run.viewer",
        api="run.googleapis.com",
        **more,
    )


def _url(case: Case, service: ServiceFacts) -> str:
    handler = case.settings.tasks_handler_url or ""
    served = handler.removesuffix(RUN_PATH) in service.urls
    return "one of the service's own" if served else "none of the service's own"


def _audience(case: Case, service: ServiceFacts) -> str:
    same = service.audience is not None and service.audience == case.settings.tasks_oidc_audience
    return f"{_AUDIENCE} as here" if same else f"{_AUDIENCE} unlike here"


SERVICE_CHECKS: tuple[Check[ServiceFacts], ...] = (
    _row(
        Code.WORKER_FOUND,
        lambda _, worker: f"a service {worker.name}",
        lambda case, _: f"a service {case.deployed.services['worker'].name}",
        missing=lambda case: failed("none", remedies.apply(case.deployed)),
    ),
    _row(
        Code.WORKER_INVOKER_CHECK,
        lambda _case, _worker: _OFF,
        lambda _, service: _ON if service.invoker_check else _OFF,
    ),
    _row(
        Code.WORKER_INGRESS,
        lambda _, worker: _INGRESS.get(worker.ingress, worker.ingress),
        lambda _, service: service.ingress,
    ),
    _row(
        Code.WORKER_TIMEOUT,
        lambda _, worker: f"{worker.timeout_seconds} s",
        lambda _, service: f"{service.timeout_seconds:g} s",
    ),
    _row(
        Code.WORKER_ACCOUNT,
        lambda case, _: case.deployed.email("worker"),
        lambda _, service: service.account,
    ),
    _row(Code.WORKER_URL, lambda _case, _worker: "one of the service's own", _url),
    _row(Code.WORKER_AUDIENCE, lambda _case, _worker: f"{_AUDIENCE} as here", _audience),
)


def _refusing(which: Callable[[HandlerFacts], Answer]) -> Callable[[Case, HandlerFacts], Said]:
    def judge(case: Case, facts: HandlerFacts) -> Said:
        return _answered(case, which(facts))

    return judge


def _answered(case: Case, answer: Answer) -> Said:
    """Judge an answer: what Google's front end says is told apart from what the worker says."""
    logs, repair = remedies.worker_logs(case.deployed), remedies.apply(case.deployed)
    inside = case.deployed.worker is not None and case.deployed.worker.ingress == "internal"
    match answer.status, answer.ours:
        case httpx.codes.UNAUTHORIZED, True:
            return fine("401")
        case httpx.codes.NOT_FOUND, False if inside:
            found = "404 of the front end: not seen from here, as ingress is internal"
            return warned(found, f"run doctor inside its network, or read {logs}")
        case httpx.codes.FORBIDDEN | httpx.codes.UNAUTHORIZED, False:
            return failed(f"{answer.status} of Cloud Run's own invoker check", repair)
        case httpx.codes.NOT_FOUND, _:
            return failed("404: no task route there", repair)
        case ((200 | 400), _):
            return failed(f"{answer.status}: it lets strangers in", repair)
    return failed(str(answer.status), logs)


def _handler(code: Code, which: Callable[[HandlerFacts], Answer]) -> Check[HandlerFacts]:
    return Check(
        code=code,
        sight=lambda seen: seen.handler,
        expected=lambda case: None if case.settings.tasks_handler_url is None else "401",
        judge=_refusing(which),
    )


HANDLER_CHECKS: tuple[Check[HandlerFacts], ...] = (
    _handler(Code.HANDLER_WITHOUT_TOKEN, lambda facts: facts.bare),
    _handler(Code.HANDLER_JUNK_TOKEN, lambda facts: facts.junk),
)
