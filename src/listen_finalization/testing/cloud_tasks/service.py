"""The methods of `google.cloud.tasks.v2.CloudTasks` on an engine, without generated stubs.

Those that are not here (IAM policies, batches, CMEK) are answered UNIMPLEMENTED by gRPC itself.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import grpc  # type: ignore[import-untyped]
from google.cloud import tasks_v2
from google.protobuf.empty_pb2 import Empty  # type: ignore[import-untyped]

from listen_finalization.domain.job import Instant, seconds
from listen_finalization.testing.cloud_tasks import limits, messages, names
from listen_finalization.testing.cloud_tasks.engine import Engine
from listen_finalization.testing.cloud_tasks.faults import FaultKind, Faults
from listen_finalization.testing.cloud_tasks.journal import StateFileError
from listen_finalization.testing.cloud_tasks.messages import Message, QueueMessage, TaskMessage
from listen_finalization.testing.cloud_tasks.paging import page
from listen_finalization.testing.cloud_tasks.refusals import CallRefusedError, Code, invalid
from listen_finalization.testing.cloud_tasks.values import Dispatch, Queue, QueueState

SERVICE = "google.cloud.tasks.v2.CloudTasks"
_Method = Callable[[Message, Instant], Message]


class TasksService:
    """Answers calls from the engine."""

    def __init__(
        self,
        engine: Engine,
        faults: Faults,
        clock: Callable[[], Instant],
        *,
        changed: Callable[[], None],
        begin: Callable[[Dispatch], None],
    ) -> None:
        """`changed` is called before a call is answered, `begin` with what RunTask began."""
        self._engine = engine
        self._faults = faults
        self._clock = clock
        self._changed = changed
        self._begin = begin

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return what a `grpc.aio` server is given."""
        methods: dict[str, tuple[_Method, Any, Any]] = {
            "ListQueues": (self._list_queues, tasks_v2.ListQueuesRequest, _LIST_QUEUES),
            "GetQueue": (self._get_queue, tasks_v2.GetQueueRequest, QueueMessage),
            "CreateQueue": (self._create_queue, tasks_v2.CreateQueueRequest, QueueMessage),
            "UpdateQueue": (self._update_queue, tasks_v2.UpdateQueueRequest, QueueMessage),
            "DeleteQueue": (self._delete_queue, tasks_v2.DeleteQueueRequest, Empty),
            "PurgeQueue": (self._purge_queue, tasks_v2.PurgeQueueRequest, QueueMessage),
            "PauseQueue": (self._pause_queue, tasks_v2.PauseQueueRequest, QueueMessage),
            "ResumeQueue": (self._resume_queue, tasks_v2.ResumeQueueRequest, QueueMessage),
            "ListTasks": (self._list_tasks, tasks_v2.ListTasksRequest, _LIST_TASKS),
            "GetTask": (self._get_task, tasks_v2.GetTaskRequest, TaskMessage),
            "CreateTask": (self._create_task, tasks_v2.CreateTaskRequest, TaskMessage),
            "DeleteTask": (self._delete_task, tasks_v2.DeleteTaskRequest, Empty),
            "RunTask": (self._run_task, tasks_v2.RunTaskRequest, TaskMessage),
        }
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                name: grpc.unary_unary_rpc_method_handler(
                    self._served(name, method),
                    request_deserializer=asked.pb().FromString,
                    response_serializer=told.SerializeToString,
                )
                for name, (method, asked, told) in methods.items()
            },
        )

    def _served(self, name: str, method: _Method) -> Callable[[Message, Any], Awaitable[Message]]:
        async def serve(request: Message, context: grpc.aio.ServicerContext) -> Message:
            try:
                refused = self._faults.hit(FaultKind.REFUSE, name)
                if refused is not None:
                    raise CallRefusedError(refused.status, "refused by a fault switch")
                answer = method(request, self._clock())
                self._changed()
                if name == "CreateTask":
                    await self._unanswered()
            except CallRefusedError as fault:
                await context.abort(grpc.StatusCode[fault.code], str(fault))
            except StateFileError as fault:
                await context.abort(grpc.StatusCode.UNAVAILABLE, str(fault))
            return answer

        return serve

    async def _unanswered(self) -> None:
        """Do what the faults that follow an accepted task do instead of an answer."""
        uncertain = self._faults.hit(FaultKind.UNCERTAIN)
        if uncertain is not None:
            raise CallRefusedError(uncertain.status, "kept, by a fault switch")
        if self._faults.hit(FaultKind.SILENT) is not None:
            await asyncio.Event().wait()  # ended by the caller's deadline, or by the server's stop

    def _list_queues(self, request: Message, now: Instant) -> Message:
        del now
        if request.filter:
            raise CallRefusedError(Code.UNIMPLEMENTED, "filter is not served here")
        found = self._engine.queues(names.location(request.parent))
        shown, token = page(found, request, limits.QUEUE_PAGE)
        return _LIST_QUEUES(
            queues=[messages.queue_message(one) for one in shown], next_page_token=token
        )

    def _get_queue(self, request: Message, now: Instant) -> Message:
        return messages.queue_message(self._engine.queue(names.queue(request.name), now))

    def _create_queue(self, request: Message, now: Instant) -> Message:
        name = names.queue(request.queue.name)
        if names.parent_of(name) != names.location(request.parent):
            raise invalid("the queue name must begin with the parent")
        queue = self._engine.create_queue(messages.queue_from(request.queue), now)
        return messages.queue_message(queue)

    def _update_queue(self, request: Message, now: Instant) -> Message:
        """Update, or create where there is none (reference, UpdateQueue)."""
        name = names.queue(request.queue.name)
        try:
            stored = self._engine.queue(name, now)
        except CallRefusedError:
            created = self._engine.create_queue(messages.queue_from(request.queue), now)
            return messages.queue_message(created)
        changed = messages.merged(stored, request.queue, request.update_mask)
        return messages.queue_message(self._engine.update_queue(changed, now))

    def _delete_queue(self, request: Message, now: Instant) -> Message:
        self._engine.delete_queue(names.queue(request.name), now)
        return Empty()

    def _purge_queue(self, request: Message, now: Instant) -> Message:
        return messages.queue_message(self._engine.purge_queue(names.queue(request.name), now))

    def _pause_queue(self, request: Message, now: Instant) -> Message:
        return messages.queue_message(self._set_state(request, QueueState.PAUSED, now))

    def _resume_queue(self, request: Message, now: Instant) -> Message:
        return messages.queue_message(self._set_state(request, QueueState.RUNNING, now))

    def _set_state(self, request: Message, state: QueueState, now: Instant) -> Queue:
        return self._engine.set_state(names.queue(request.name), state, now)

    def _list_tasks(self, request: Message, now: Instant) -> Message:
        found = self._engine.tasks(names.queue(request.parent), now)
        shown, token = page(found, request, limits.TASK_PAGE)
        return _LIST_TASKS(
            tasks=[messages.task_message(one, request.response_view) for one in shown],
            next_page_token=token,
        )

    def _get_task(self, request: Message, now: Instant) -> Message:
        task = self._engine.task(names.task(request.name), now)
        return messages.task_message(task, request.response_view)

    def _create_task(self, request: Message, now: Instant) -> Message:
        queue = names.queue(request.parent)
        # Production's own names are long numbers.
        own = f"{queue}/tasks/{secrets.randbelow(9 * 10**18) + 10**18}"
        name = names.task(request.task.name or own)
        if names.parent_of(name) != queue:
            raise invalid("the queue of the task name must be the parent")
        task = messages.task_from(request.task, name, now)
        self._engine.check_new(name, now)
        # Only a call that would be accepted is an occasion for these faults.
        late = self._faults.hit(FaultKind.LATE)
        moved = seconds(late.seconds or 0) if late is not None else 0
        lost = self._faults.hit(FaultKind.FORGET) is not None
        late_task = replace(task, ready=Instant(task.ready + moved))
        created = self._engine.create_task(late_task, now, lost=lost)
        return messages.task_message(created, request.response_view)

    def _delete_task(self, request: Message, now: Instant) -> Message:
        self._engine.delete_task(names.task(request.name), now)
        return Empty()

    def _run_task(self, request: Message, now: Instant) -> Message:
        task, dispatch = self._engine.run_task(names.task(request.name), now)
        self._begin(dispatch)
        return messages.task_message(task, request.response_view)


_LIST_QUEUES: Any = tasks_v2.ListQueuesResponse.pb()
_LIST_TASKS: Any = tasks_v2.ListTasksResponse.pb()
