"""The product in a process, over either store, watched from outside by a test."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx

from integration.in_process import listening, serving
from listen_finalization.domain.content import Enrichment, Memory, Segment
from listen_finalization.domain.job import Job
from listen_finalization.http.serving import hush
from listen_finalization.processing.protocol import Request
from listen_finalization.settings import RUN_PATH

from .ground import Ground, all_jobs
from .site import Site, open_site

CANARY = "canary-5b1e77"
UID = "ada"


class Scripted:
    """A processor that does as it was told for each conversation, and counts what it ran."""

    def __init__(self) -> None:
        self.faults: defaultdict[str, list[Exception]] = defaultdict(list)
        self.holds: dict[str, threading.Event] = {}
        self.discards: set[str] = set()
        self.runs: Counter[str] = Counter()
        self.requests: defaultdict[str, list[Request]] = defaultdict(list)

    def enrich(self, request: Request) -> Enrichment | None:
        key = name_of(request)
        self.runs[key] += 1
        self.requests[key].append(request)
        if key in self.holds:
            self.holds[key].wait(30)
        if self.faults[key]:
            raise self.faults[key].pop(0)
        discard = key in self.discards
        return Enrichment(f"About {key}", f"Somebody said {CANARY}.", discard=discard)

    def memories(self, request: Request, enrichment: Enrichment) -> Sequence[Memory]:
        return [Memory(f"{name_of(request)} remembers {CANARY}")]


def name_of(request: Request) -> str:
    """Return the conversation's id, which its first segment is named after."""
    segments = request.content.segments
    return segments[0].id.partition(":")[0] if segments else "photos"


class Watch(logging.Handler):
    """Keeps everything that is logged, at every level, tracebacks included."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


class House:
    """One process of the product; answers and log lines are kept for the checks after a case."""

    def __init__(self, ground: Ground, processor: Scripted, site: Site) -> None:
        self.ground = ground
        self.processor = processor
        self.site = site
        self.outbox = site.store.outbox
        self.conversations = site.store.conversations
        self.signals = site.signals
        self.watch = Watch()
        self.told: list[str] = []
        self.statuses: Counter[int] = Counter()
        self.high: dict[str, tuple[int, int]] = {}
        self._under_way = 0

    def token(self, uid: str = UID) -> str:
        return f"Bearer {self.site.user_token(uid)}"

    def task_token(self) -> str:
        return f"Bearer {self.site.task_token()}"

    @asynccontextmanager
    async def client(self, uid: str = UID) -> AsyncIterator[httpx.AsyncClient]:
        """Ask as a user; answers are kept, except the record, which is content."""
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(self.site.app),
            base_url="https://house.example",
            headers={"Authorization": self.token(uid)},
            event_hooks={"response": [self._keep]},
        ) as client:
            yield client

    async def _keep(self, response: httpx.Response) -> None:
        await response.aread()
        self.statuses[response.status_code] += 1
        if not (response.request.method == "GET" and _is_record(response.request.url.path)):
            self.told.append(f"{response.headers} {response.text}")

    async def deliver(
        self, job_id: str, generation: int, *, retry: int = 0, body: bytes | None = None
    ) -> httpx.Response:
        """Deliver a task to the worker route as the queue would."""
        task = json.dumps({"job_id": job_id, "dispatch_generation": generation}).encode()
        headers = {
            "Authorization": self.task_token(),
            "X-CloudTasks-TaskRetryCount": str(retry),
        }
        transport = httpx.ASGITransport(self.site.app)
        async with httpx.AsyncClient(transport=transport, base_url="https://w.example") as client:
            answer = await client.post(RUN_PATH, content=body or task, headers=headers)
        self.told.append(f"{answer.headers} {answer.text}")
        return answer

    async def spoken(self, key: str, uid: str = UID, *, byok: bool = False) -> None:
        """Store one segment, which says the canary."""
        said = Segment(f"{key}:1", "Ada", 0.0, 2.0, f"We ship {CANARY} on Friday.")
        await self.conversations.append(uid, key, [said], byok=byok)

    async def jobs(self) -> list[Job]:
        return await all_jobs(self.outbox)

    async def job_of(self, key: str, uid: str = UID) -> Job:
        record = await self.conversations.find(uid, key)
        assert record is not None and record.conversation.job_id is not None
        job = await self.outbox.get(record.conversation.job_id)
        assert job is not None
        return job

    async def until(self, true: Callable[[], Awaitable[bool]], limit: float = 30.0) -> None:
        async with asyncio.timeout(limit):
            while not await true():  # noqa: ASYNC110 - seen from outside, as a client would
                await asyncio.sleep(0.01)

    async def settled(self, limit: float = 60.0) -> None:
        """Wait until no job is queued or leased."""

        async def quiet() -> bool:
            return all(job.terminal or job.status == "blocked_byok" for job in await self.jobs())

        await self.until(quiet, limit)

    async def record(self, key: str, uid: str = UID) -> dict[str, Any]:
        """Return the conversation with its record as its owner sees it."""
        return await self.site.record(uid, key)

    async def delete(self, key: str, uid: str = UID) -> None:
        """Delete the conversation as its owner does."""
        await self.site.delete(uid, key)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[int]:
        """Serve on a free port of loopback, and yield the port."""
        hush()
        listener = listening()
        async with serving(self._counting(), listener):
            yield int(listener.getsockname()[1])

    async def idle(self) -> bool:
        """Whether no request that came over a socket is under way."""
        return self._under_way == 0

    def _counting(self) -> Any:
        async def counted(scope: Any, receive: Any, send: Any) -> None:
            self._under_way += scope["type"] == "http"
            try:
                await self.site.app(scope, receive, send)
            finally:
                self._under_way -= scope["type"] == "http"

        return counted


def _is_record(path: str) -> bool:
    return path.count("/") == 3


@asynccontextmanager
async def house(
    ground: Ground, processor: Scripted | None = None, *, running: bool = True, **settings: Any
) -> AsyncIterator[House]:
    """Open a house; not `running`, nobody dispatches and deliveries are the test's own."""
    processor = processor or Scripted()
    chosen: dict[str, Any] = {
        "backoff_seconds": 0.05,
        "backoff_limit_seconds": 0.2,
        "tasks_max_attempts": 3,
        **settings,
    }
    made = House(ground, processor, await open_site(ground, processor, chosen))
    root = logging.getLogger()
    before = root.level
    root.addHandler(made.watch)
    root.setLevel(logging.DEBUG)
    logging.getLogger("grpc._cython.cygrpc").setLevel(logging.INFO)  # a line for every call
    try:
        if running:
            await made.site.start()
        yield made
    finally:
        for held in processor.holds.values():
            held.set()
        await made.site.close()
        root.removeHandler(made.watch)
        root.setLevel(before)
