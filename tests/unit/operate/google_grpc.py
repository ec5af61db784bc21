"""A gRPC server on loopback with one queue, its policy, and a database without documents."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import grpc  # type: ignore[import-untyped]
from google.cloud import tasks_v2
from google.cloud.firestore_v1.types import firestore
from google.iam.v1 import iam_policy_pb2, policy_pb2  # type: ignore[import-untyped]

_TASKS = "google.cloud.tasks.v2.CloudTasks"
_STORE = "google.firestore.v1.Firestore"


class GoogleGrpc:
    """`queue` and `policy` are what a test made them; `refused` holds a status by method.

    `ahead` is by how many seconds the database's clock is ahead.
    """

    def __init__(self, queue: tasks_v2.Queue, policy: policy_pb2.Policy) -> None:
        self.queue = queue
        self.policy = policy
        self.refused: dict[str, grpc.StatusCode] = {}
        self.ahead = 0.0
        self._server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers((self._tasks(), self._store()))
        self._port: int = self._server.add_insecure_port("127.0.0.1:0")

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(0).wait()

    def _tasks(self) -> grpc.GenericRpcHandler:
        queue = tasks_v2.Queue
        methods = {
            "GetQueue": (tasks_v2.GetQueueRequest.pb(), queue.pb(), lambda: queue.pb(self.queue)),
            "GetIamPolicy": (
                iam_policy_pb2.GetIamPolicyRequest,
                policy_pb2.Policy,
                lambda: self.policy,
            ),
        }
        return grpc.method_handlers_generic_handler(
            _TASKS,
            {
                name: grpc.unary_unary_rpc_method_handler(
                    self._served(name, told),
                    request_deserializer=asked.FromString,
                    response_serializer=kind.SerializeToString,
                )
                for name, (asked, kind, told) in methods.items()
            },
        )

    def _served(self, name: str, told: Callable[[], Any]) -> Callable[[Any, Any], Any]:
        def serve(_: Any, context: grpc.ServicerContext) -> Any:
            self._refuse(name, context)
            return told()

        return serve

    def _store(self) -> grpc.GenericRpcHandler:
        def serve(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            self._refuse("BatchGetDocuments", context)
            answer = firestore.BatchGetDocumentsResponse.pb()(missing=request.documents[0])
            answer.read_time.FromNanoseconds(time.time_ns() + int(self.ahead * 1e9))
            yield answer

        handler = grpc.unary_stream_rpc_method_handler(
            serve,
            request_deserializer=firestore.BatchGetDocumentsRequest.pb().FromString,
            response_serializer=firestore.BatchGetDocumentsResponse.pb().SerializeToString,
        )
        return grpc.method_handlers_generic_handler(_STORE, {"BatchGetDocuments": handler})

    def _refuse(self, name: str, context: grpc.ServicerContext) -> None:
        if name in self.refused:
            context.abort(self.refused[name], "canary-refusal-19ab")
