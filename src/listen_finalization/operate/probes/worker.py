"""The worker's Cloud Run service, and what its URL answers to strangers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from listen_finalization.operate.facts import (
    Answer,
    Blind,
    HandlerFacts,
    Look,
    ServiceFacts,
    Unseen,
)
from listen_finalization.operate.google import parsed
from listen_finalization.operate.probes.policies import worker_name
from listen_finalization.operate.probes.reach import Reach
from listen_finalization.settings import BY_FIELD

_AUDIENCE = BY_FIELD["tasks_oidc_audience"].name
_JUNK = {"Authorization": "Bearer junk"}


async def look_at_worker(reach: Reach) -> Look[ServiceFacts]:
    """Return the service as it is (run.googleapis.com/v2, Service)."""
    place = f"{reach.google.at.run}/v2/{worker_name(reach)}"
    return parsed(await reach.google.get(place), _service)


def _service(document: Mapping[str, Any]) -> ServiceFacts:
    template = document["template"]
    environment = {
        one["name"]: one.get("value") for one in template["containers"][0].get("env", [])
    }
    return ServiceFacts(
        ingress=str(document["ingress"]),
        invoker_check=not document.get("invokerIamDisabled", False),
        account=str(template["serviceAccount"]),
        timeout_seconds=float(template["timeout"].removesuffix("s")),
        urls=frozenset(document.get("urls", [document.get("uri", "")])),
        audience=environment.get(_AUDIENCE),
    )


async def look_at_handler(reach: Reach) -> Look[HandlerFacts]:
    """Ask the handler URL of the settings for a run, without a token and with a junk one.

    The body is no task, so a route that lets strangers in refuses it and runs nothing.
    """
    url = reach.settings.tasks_handler_url or ""
    try:
        return HandlerFacts(
            bare=await _ask(reach.client, url, {}),
            junk=await _ask(reach.client, url, _JUNK),
        )
    except httpx.HTTPError:
        return Unseen(Blind.UNREACHABLE)


async def _ask(client: httpx.AsyncClient, url: str, headers: Mapping[str, str]) -> Answer:
    answer = await client.post(url, json={}, headers=dict(headers), timeout=None)
    kind = answer.headers.get("content-type", "")
    return Answer(answer.status_code, ours=kind.startswith("application/"))
