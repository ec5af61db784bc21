"""Notes what this process asks Firestore for: every query's shape, and every call's cost.

It stands in the generated client, below this product's store and the library's own methods alike;
the calls themselves stay real.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import pytest
from google.cloud.firestore_v1.services.firestore.async_client import FirestoreAsyncClient
from google.cloud.firestore_v1.types import firestore

from .index_file import IndexFile
from .index_rules import Shape
from .shapes import shape_of
from .work import Work, work_of

_Call = Callable[..., Any]
_STREAMS = {
    "batch_get_documents": firestore.BatchGetDocumentsRequest,
    "run_query": firestore.RunQueryRequest,
    "run_aggregation_query": firestore.RunAggregationQueryRequest,
}


class Watch:
    """A context manager: calls are seen while it is entered."""

    def __init__(self) -> None:
        self.shapes: dict[Shape, None] = {}
        self._work: list[Work] = []
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> Self:
        for name, kind in _STREAMS.items():
            call = getattr(FirestoreAsyncClient, name)
            self._patch.setattr(FirestoreAsyncClient, name, self._streaming(call, kind))
        commit = FirestoreAsyncClient.commit
        self._patch.setattr(FirestoreAsyncClient, "commit", self._committing(commit))
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()

    def check(self, file: IndexFile) -> None:
        """Assert that the service would have answered every query that was seen."""
        missing = file.uncovered(self.shapes)
        assert not missing, f"no index of deploy/firestore/indexes.json serves {missing}"

    @contextmanager
    def counted(self) -> Iterator[Callable[[], Work]]:
        """Count what is done within; ask for the sum at its end."""
        self._work = []
        yield lambda: sum(self._work, Work())

    def _streaming(self, call: _Call, kind: Any) -> _Call:
        async def seen(client: Any, request: Any = None, **options: Any) -> AsyncIterator[Any]:
            told = kind.pb(kind(request))
            if kind is not firestore.BatchGetDocumentsRequest:
                self.shapes[shape_of(told)] = None
            return self._answers(told, await call(client, request=request, **options))

        return seen

    async def _answers(self, request: Any, stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
        answers: list[Any] = []
        try:
            async for answer in stream:
                answers.append(type(answer).pb(answer))
                yield answer
        finally:
            self._work.append(work_of(request, answers))

    def _committing(self, call: _Call) -> _Call:
        async def seen(client: Any, request: Any = None, **options: Any) -> Any:
            self._work.append(work_of(firestore.CommitRequest.pb(firestore.CommitRequest(request))))
            return await call(client, request=request, **options)

        return seen
