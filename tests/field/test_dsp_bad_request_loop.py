"""dsp-bad-request-loop: what cannot heal is answered so that the queue does not burn attempts.

The answers are those of contract 8. A malformed body, and a job that nobody knows, cannot come
from our own dispatcher; they get a 4xx, which the queue repeats until its attempts are spent, and
which changes nothing however often it comes.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import pytest

from listen_finalization.domain.codes import RedispatchCause
from listen_finalization.domain.commands import Redispatch
from listen_finalization.errors import StepFailedError

from .checks import all_checks
from .ground import Ground, traces
from .house import House, Scripted, house

ATTEMPTS = 5
UNKNOWN = "00000000-0000-8000-8000-000000000000"
Case = tuple[str, int, bytes | None]


async def admitted(home: House, key: str, *, byok: bool = False) -> None:
    await home.spoken(key, byok=byok)
    async with home.client() as client:
        assert (await client.post(f"/v1/conversations/{key}/finalize")).status_code == 200


async def extra_field(home: House) -> Case:
    await admitted(home, "c1")
    job = await home.job_of("c1")
    body = {"job_id": job.job_id, "dispatch_generation": 1, "transcript": "x"}
    return job.job_id, 1, json.dumps(body).encode()


async def missing_field(home: House) -> Case:
    await admitted(home, "c1")
    job = await home.job_of("c1")
    return job.job_id, 1, json.dumps({"job_id": job.job_id}).encode()


async def unknown(home: House) -> Case:
    return UNKNOWN, 1, None


async def stale(home: House) -> Case:
    await admitted(home, "c1")
    job = await home.job_of("c1")
    await home.outbox.apply(Redispatch(job.job_id, 1, RedispatchCause.REQUEUE))
    assert (await home.job_of("c1")).dispatch_generation == 2
    return job.job_id, 1, None


async def future(home: House) -> Case:
    await admitted(home, "c1")
    return (await home.job_of("c1")).job_id, 7, None


async def completed(home: House) -> Case:
    await admitted(home, "c1")
    job = await home.job_of("c1")
    await home.deliver(job.job_id, 1)
    assert (await home.job_of("c1")).status == "completed"
    return job.job_id, 1, None


async def dead(home: House) -> Case:
    home.processor.faults["c1"] = [StepFailedError() for _ in range(3)]
    await admitted(home, "c1")
    job = await home.job_of("c1")
    for _ in range(3):
        await home.deliver(job.job_id, 1)
    assert (await home.job_of("c1")).status == "dead_letter"
    return job.job_id, 1, None


async def blocked(home: House) -> Case:
    await admitted(home, "c1", byok=True)
    return (await home.job_of("c1")).job_id, 1, None


@pytest.mark.parametrize(
    ("kind", "status", "told"),
    [
        (extra_field, 400, {"status": "refused", "code": "body_invalid"}),
        (missing_field, 400, {"status": "refused", "code": "body_invalid"}),
        (unknown, 404, {"status": "unknown", "code": "job_unknown"}),
        (stale, 200, {"status": "ignored", "code": "stale_generation"}),
        (future, 200, {"status": "ignored", "code": "stale_generation"}),
        (completed, 200, {"status": "ignored", "code": "terminal"}),
        (dead, 200, {"status": "ignored", "code": "terminal"}),
        (blocked, 200, {"status": "ignored", "code": "blocked_byok"}),
    ],
)
async def test_a_delivery_that_cannot_heal_is_constant_and_changes_nothing(
    ground: Ground,
    kind: Callable[[House], Awaitable[Case]],
    status: int,
    told: dict[str, str],
) -> None:
    async with house(ground, Scripted(), running=False) as home:
        job_id, generation, body = await kind(home)
        before = await traces(ground), dict(home.processor.runs)
        for retry in range(ATTEMPTS):
            answer = await home.deliver(job_id, generation, retry=retry, body=body)
            assert (answer.status_code, answer.json()) == (status, told)
            assert (await traces(ground), dict(home.processor.runs)) == before
        await all_checks(home)
