"""One examination: every probe at once, each within its time, then the judgement."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx

from listen_finalization.operate.checks.check import Case
from listen_finalization.operate.deployed import Deployed
from listen_finalization.operate.doctor import findings
from listen_finalization.operate.facts import Blind, Missing, Seen, Unseen
from listen_finalization.operate.findings import Finding
from listen_finalization.operate.google import Endpoints, Google, Headers, default_account
from listen_finalization.operate.probes import around, policies, queue, store, worker
from listen_finalization.operate.probes.reach import Reach
from listen_finalization.settings import Settings

AT_ONCE = 8
"""Probes that look at the same time."""

Probe = Callable[[Reach], Awaitable[object]]

_PROBES: Mapping[str, Probe] = {
    "queue": queue.look_at_queue,
    "queue_policy": queue.look_at_queue_policy,
    "invoker_policy": policies.look_at_invoker_policy,
    "project_policy": policies.look_at_project_policy,
    "worker": worker.look_at_worker,
    "worker_policy": policies.look_at_worker_policy,
    "indexes": store.look_at_indexes,
    "fields": store.look_at_fields,
    "store": store.look_at_store,
    "handler": worker.look_at_handler,
    "task_keys": around.look_at_task_keys,
    "user_keys": around.look_at_user_keys,
    "clock": around.look_at_clock,
    "run_lock": around.look_at_run_lock,
}
_OF_THE_QUEUE = frozenset(
    {"queue", "queue_policy", "invoker_policy", "project_policy", "worker", "worker_policy"}
)
COUNT = len(_PROBES)
"""Places that are looked at, at most."""


async def examine(
    deployed: Deployed,
    settings: Settings,
    *,
    deadline: float,
    noted: Callable[[str], None] = lambda _: None,
    endpoints: Endpoints | None = None,
    account: Callable[[], Awaitable[Headers | Unseen]] = default_account,
) -> tuple[Finding, ...]:
    """Look everywhere and judge; nothing anywhere is changed.

    Each probe has `deadline` seconds and is told of by `noted` when it ended. `endpoints` and
    `account` are for tests. Raises nothing for a place that does not answer.
    """
    async with httpx.AsyncClient() as client:
        google = Google(client, account, endpoints or Endpoints())
        reach = Reach(deployed, settings, client, google, deadline)
        seen = await _look(reach, noted)
        await google.aclose()
    return findings(Case(deployed, settings), seen)


async def _look(reach: Reach, noted: Callable[[str], None]) -> Seen:
    free = asyncio.Semaphore(AT_ONCE)

    async def look(name: str, probe: Probe) -> object:
        async with free:
            found = await _within(reach, probe)
        noted(name)
        return found

    wanted = {name: probe for name, probe in _PROBES.items() if _applies(name, reach)}
    found = await asyncio.gather(*(look(name, probe) for name, probe in wanted.items()))
    ended: dict[str, Any] = dict.fromkeys(_PROBES, Missing()) | dict(
        zip(wanted, found, strict=True)
    )
    return Seen(**ended)


async def _within(reach: Reach, probe: Probe) -> object:
    try:
        async with asyncio.timeout(reach.deadline):
            return await probe(reach)
    except TimeoutError:
        return Unseen(Blind.TIMED_OUT)


def _applies(name: str, reach: Reach) -> bool:
    if name in _OF_THE_QUEUE:
        return reach.deployed.queue is not None
    return name != "run_lock" or reach.settings.run_lock_url is not None
