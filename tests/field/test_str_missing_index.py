"""str-missing-index: the emulator answers any query, the service only those that have an index."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from google.api_core.exceptions import FailedPrecondition
from google.cloud.firestore_v1.services.firestore.async_client import FirestoreAsyncClient
from google.cloud.firestore_v1.types import firestore

from firestore_wire.index_file import IndexFile
from firestore_wire.index_rules import Shape
from firestore_wire.shapes import RUN_COUNT, RUN_QUERY, shape_of
from integration.cloud import Cloud
from integration.in_process import served
from listen_finalization.domain.codes import Status
from listen_finalization.domain.commands import Admit
from listen_finalization.errors import StoreRefusedError
from listen_finalization.observe.signals import Event
from listen_finalization.outbox.firestore import queries
from listen_finalization.ports import Outbox
from listen_finalization.stack.production import Production
from listen_finalization.testing.processor import FakeProcessor

pytestmark = pytest.mark.xdist_group("firestore")

LINK = "https://console.firebase.google.com/v1/r/project/p/firestore/indexes?create_composite=Ck"
BEHIND = (1, "projects/p/databases/(default)/documents/conversation_finalization_jobs/1")
SENT: Mapping[str, Any] = {
    "due": queries.due(1, None),
    "due, next page": queries.due(1, BEHIND),
    "leases": queries.leases(1),
    "list": queries.newest(None, 1, None),
    "list, next page": queries.newest(None, 1, BEHIND),
    "list of a status": queries.newest(Status.QUEUED, 1, None),
    "list of a status, next page": queries.newest(Status.QUEUED, 1, BEHIND),
    "oldest": queries.oldest(Status.QUEUED),
    "counts": queries.count(Status.QUEUED),
    "memories": queries.memories("c"),
    "records": queries.rows("a", "b", 1),
}
"""Every query of the store; tests/contract/test_firestore_indexes.py sees that none is missing."""


def _shape(query: Any) -> Shape:
    if "Aggregation" in type(query).__name__:
        return shape_of(RUN_COUNT(structured_aggregation_query=query))
    return shape_of(RUN_QUERY(structured_query=query))


SHAPES = {name: _shape(query) for name, query in SENT.items()}
FIGURES = ("counts", "oldest", "leases", *(name for name in SENT if name.startswith("list")))


@contextmanager
def refused(name: str) -> Iterator[None]:
    """Answer one shape as the service does where its index is missing."""
    with pytest.MonkeyPatch.context() as patch:
        for method, kind in (
            ("run_query", firestore.RunQueryRequest),
            ("run_aggregation_query", firestore.RunAggregationQueryRequest),
        ):
            patch.setattr(FirestoreAsyncClient, method, _refusing(method, kind, SHAPES[name]))
        yield


def _refusing(method: str, kind: Any, shape: Shape) -> Any:
    call = getattr(FirestoreAsyncClient, method)

    async def answered(client: Any, request: Any = None, **options: Any) -> Any:
        if shape_of(kind.pb(kind(request))) == shape:
            told = f"The query requires an index. You can create it here: {LINK}"
            raise FailedPrecondition(told)  # type: ignore[no-untyped-call]
        return await call(client, request=request, **options)

    return answered


async def _refusals(outbox: Outbox) -> list[str]:
    """Ask all that metrics and operators ask for, and return the errors."""
    asked = (
        outbox.counts(),
        outbox.oldest(),
        outbox.leases(1),
        outbox.list(limit=1),
        outbox.list(limit=1, cursor="1.a"),
        outbox.list(status=Status.QUEUED, limit=1),
        outbox.list(status=Status.QUEUED, limit=1, cursor="1.a"),
    )
    found = await asyncio.gather(*asked, return_exceptions=True)
    faults = [one for one in found if isinstance(one, BaseException)]
    assert all(isinstance(fault, StoreRefusedError) for fault in faults)
    return [str(fault) for fault in faults]


async def _lost(cloud: Cloud, name: str) -> None:
    """Admit a job whose task got lost, long ago."""
    await cloud.talk(name)
    answer = await cloud.store.outbox.apply(Admit("ada", name))
    long_ago = {"reconcile_after_at": datetime(2026, 1, 1, tzinfo=UTC)}
    await cloud.client.document("conversation_finalization_jobs", answer.job.job_id).update(  # type: ignore[union-attr]
        long_ago
    )


async def _told(cloud: Cloud, name: str) -> str:
    """Return all that customers and probes are told while a query is refused."""
    url = cloud.worker_url
    answers = [
        await cloud.finalize(url, name),
        await cloud.status(url, name),
        await cloud.http.get(f"{url}/readyz"),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    return "".join(f"{answer.headers} {answer.text}" for answer in answers)


def test_every_shape_has_a_shipped_index() -> None:
    assert IndexFile.shipped().uncovered(SHAPES.values()) == []


@pytest.mark.timeout(120)
async def test_refused_figures_stop_no_recovery_and_tell_customers_nothing(
    cloud_of: Callable[..., Cloud], caplog: pytest.LogCaptureFixture
) -> None:
    # The stack's own round at its start is over before a job is lost, and there is no second one.
    async with cloud_of(LISTEN_FINALIZATION_RECONCILE_INTERVAL_SECONDS="3600") as cloud:
        async with served(cloud, FakeProcessor()) as stack:
            async with asyncio.timeout(30):
                while not stack.signals.count(Event.ROUND_DONE):  # noqa: ASYNC110 - seen from outside
                    await asyncio.sleep(0.01)
            for number, name in enumerate(FIGURES):
                with refused(name):
                    await _lost(cloud, f"c{number}")
                    [told] = await _refusals(stack.store.outbox)
                    assert LINK not in told
                    assert (await _round(stack)) == 1
                    assert LINK not in await _told(cloud, f"c{number}")
            await cloud.until(len(FIGURES), 60)
        assert {job.status for job in await cloud.jobs()} == {Status.COMPLETED}
    assert LINK not in caplog.text


async def _round(stack: Production) -> int:
    assert stack.reconciler is not None
    return (await stack.reconciler.run_once(force=True)).redispatched


async def test_refused_due_query_raises_the_alarm_within_a_round(
    cloud_of: Callable[..., Cloud], caplog: pytest.LogCaptureFixture
) -> None:
    async with cloud_of() as cloud:
        await _lost(cloud, "lost")
        with refused("due"):
            async with served(cloud, FakeProcessor()) as stack:
                async with asyncio.timeout(30):
                    while not stack.signals.count(Event.ROUND_FAILED):  # noqa: ASYNC110 - seen from outside
                        await asyncio.sleep(0.01)
                await cloud.talk("new")
                assert LINK not in await _told(cloud, "new")
                assert stack.signals.count(Event.ROUND_DONE) == 0
    assert LINK not in caplog.text
