"""The four calls that this store makes, each with a deadline and no retry of the client's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.cloud.firestore_v1 import AsyncClient
from google.cloud.firestore_v1.services.firestore import async_client
from google.cloud.firestore_v1.services.firestore.transports import grpc_asyncio
from google.cloud.firestore_v1.types import firestore

from listen_finalization.domain.job import Instant
from listen_finalization.observe.quiet import keep_requests_out_of_logs
from listen_finalization.outbox.firestore.faults import COMMITTING, READING, fault_of
from listen_finalization.outbox.firestore.fields import Fields
from listen_finalization.outbox.firestore.names import Names
from listen_finalization.outbox.firestore.values import instant_of

READ_DEADLINE = 5.0
"""Seconds for documents by name: a hundred times the usual, and short against a caller's 30 s."""

COMMIT_DEADLINE = 5.0
"""Seconds for a commit; what comes later is an unknown outcome, which a fresh read resolves."""

QUERY_DEADLINE = 10.0
"""Seconds for a page or a count: those serve loops and operators, no customer waits for them."""

_READ = firestore.BatchGetDocumentsRequest
_COMMIT = firestore.CommitRequest
_QUERY = firestore.RunQueryRequest
_COUNT = firestore.RunAggregationQueryRequest


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it was read; `updated` is the version that a guard names."""

    name: str
    fields: Fields
    updated: Any


@dataclass(frozen=True, slots=True)
class Found:
    """What one call read, by name, and the instant at which all of it was true.

    The documents of one stream did not change between their own read time and a later one's
    (`BatchGetDocumentsResponse.read_time`), so the latest is that instant.
    """

    documents: Mapping[str, Document]
    now: Instant

    def of(self, name: str) -> Document | None:
        return self.documents.get(name)


class Rpc:
    """Calls one database. Raises `StoreError` and nothing else.

    It uses the generated client below `AsyncClient`, whose own methods can neither write with an
    empty mask nor tell the read time of an answer without documents.
    """

    def __init__(self, client: AsyncClient, shift: Callable[[], int]) -> None:
        keep_requests_out_of_logs(async_client, grpc_asyncio)
        self._client = client
        self._shift = shift
        self._database = client._database_string
        self.names = Names(self._database)

    @property
    def _calls(self) -> Any:
        """The generated client; its channel is made at the first call, in the running loop."""
        return self._client._firestore_api

    def _options(self, deadline: float) -> dict[str, Any]:
        return {"metadata": self._client._rpc_metadata, "retry": None, "timeout": deadline}

    async def read(self, names: Sequence[str], mask: Sequence[str] | None = None) -> Found:
        """Read documents by name, whole or as far as the field paths of `mask` go."""
        request = _READ.pb()(database=self._database, documents=names)
        if mask is not None:
            request.mask.field_paths.extend(mask)
        try:
            stream = await self._calls.batch_get_documents(
                request=_READ.wrap(request), **self._options(READ_DEADLINE)
            )
            answers = [firestore.BatchGetDocumentsResponse.pb(answer) async for answer in stream]
        except Exception as error:
            raise fault_of(error, READING) from error
        found = [answer.found for answer in answers if answer.HasField("found")]
        return Found({one.name: _document(one) for one in found}, self._latest(answers))

    async def commit(self, writes: Sequence[Any]) -> None:
        """Carry out all writes or none, durable on return."""
        request = _COMMIT.pb()(database=self._database, writes=writes)
        try:
            await self._calls.commit(
                request=_COMMIT.wrap(request), **self._options(COMMIT_DEADLINE)
            )
        except Exception as error:
            raise fault_of(error, COMMITTING) from error

    async def query(self, query: Any, parent: str | None = None) -> Found:
        """Run a query; the documents keep the order in which they came."""
        request = _QUERY.pb()(parent=parent or self.names.root, structured_query=query)
        try:
            stream = await self._calls.run_query(
                request=_QUERY.wrap(request), **self._options(QUERY_DEADLINE)
            )
            answers = [firestore.RunQueryResponse.pb(answer) async for answer in stream]
        except Exception as error:
            raise fault_of(error, READING) from error
        found = [answer.document for answer in answers if answer.HasField("document")]
        return Found({one.name: _document(one) for one in found}, self._latest(answers))

    async def count(self, query: Any) -> int:
        """Return the only number of an aggregation query."""
        request = _COUNT.pb()(parent=self.names.root, structured_aggregation_query=query)
        try:
            stream = await self._calls.run_aggregation_query(
                request=_COUNT.wrap(request), **self._options(QUERY_DEADLINE)
            )
            answers = [firestore.RunAggregationQueryResponse.pb(answer) async for answer in stream]
        except Exception as error:
            raise fault_of(error, READING) from error
        held = [v for a in answers for v in a.result.aggregate_fields.values()]
        return sum(value.integer_value for value in held)

    async def close(self) -> None:
        """Close the channel. May be called again."""
        await self._calls.transport.close()

    def _latest(self, answers: Sequence[Any]) -> Instant:
        read = max(instant_of(answer.read_time) for answer in answers)
        return Instant(read + self._shift())


def _document(told: Any) -> Document:
    return Document(told.name, told.fields, told.update_time)
