"""A gRPC server in front of the emulator, for roles in processes of their own.

It passes every call on and notes the shape of each query.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Self

import grpc  # type: ignore[import-untyped]

from .index_file import IndexFile
from .index_rules import Shape
from .shapes import RUN_COUNT, RUN_QUERY, UnknownShapeError, shape_of

_OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
_SERVICE = "/google.firestore.v1.Firestore/"
_QUERIES: Mapping[str, Callable[[], Any]] = {
    f"{_SERVICE}RunQuery": RUN_QUERY,
    f"{_SERVICE}RunAggregationQuery": RUN_COUNT,
}
_OF_THE_CONNECTION = ("grpc-", "user-agent", "te", "content-type", ":")


class Tap:
    """Listens on a free port of loopback while it is entered."""

    def __init__(self, target: str) -> None:
        self._target = target
        self.address = ""
        self.shapes: dict[Shape, None] = {}
        self.unknown = 0
        """Queries whose shape the rules of the indexes do not know."""

    async def __aenter__(self) -> Self:
        self._channel = grpc.aio.insecure_channel(self._target, options=_OPTIONS)
        self._server = grpc.aio.server(options=_OPTIONS)
        self._server.add_generic_rpc_handlers((_Every(self._answer),))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop(None)
        await self._channel.close()

    def check(self, file: IndexFile) -> None:
        """Assert that the service would have answered every query that was seen."""
        missing = file.uncovered(self.shapes)
        assert not missing, f"no index of deploy/firestore/indexes.json serves {missing}"
        assert not self.unknown

    async def _answer(self, method: str, request: bytes, context: Any) -> AsyncIterator[bytes]:
        self._note(method, request)
        headers = [pair for pair in context.invocation_metadata() if _is_callers(pair[0])]
        call = self._channel.unary_stream(method)(
            request, timeout=context.time_remaining(), metadata=headers
        )
        try:
            async for answer in call:
                yield answer
        except grpc.aio.AioRpcError as error:
            context.set_trailing_metadata(tuple(error.trailing_metadata()))
            await context.abort(error.code(), error.details() or "")

    def _note(self, method: str, request: bytes) -> None:
        if method not in _QUERIES:
            return
        told = _QUERIES[method]()
        told.ParseFromString(request)
        try:
            self.shapes[shape_of(told)] = None
        except UnknownShapeError:
            self.unknown += 1


class _Every(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Answers every method alike: one request, any number of answers, all as bytes."""

    def __init__(self, answer: Callable[[str, bytes, Any], AsyncIterator[bytes]]) -> None:
        self._answer = answer

    def service(self, details: Any) -> Any:
        async def behave(request: bytes, context: Any) -> AsyncIterator[bytes]:
            async for answer in self._answer(details.method, request, context):
                yield answer

        return grpc.unary_stream_rpc_method_handler(behave)


def _is_callers(key: str) -> bool:
    return not key.startswith(_OF_THE_CONNECTION)
