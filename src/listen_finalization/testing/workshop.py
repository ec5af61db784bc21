"""One worker without HTTP and loops over a real store: for tests of processors, and ours."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from listen_finalization.admission import Admission
from listen_finalization.domain.codes import EffectCode
from listen_finalization.domain.commands import Admit
from listen_finalization.domain.content import Segment
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import Job, seconds
from listen_finalization.domain.policy import Policy
from listen_finalization.finalizer import Delivery, Finalizer, Result
from listen_finalization.observe.signals import Signals
from listen_finalization.outbox.sqlite import SqliteStore
from listen_finalization.ports import Conversations, Liveness, Outbox, Record, RunLock, Store
from listen_finalization.processing.delivery import Delivery as Sending
from listen_finalization.processing.delivery import DeliveryResult
from listen_finalization.processing.destinations import Destinations
from listen_finalization.processing.fanout import Fanout, Sender
from listen_finalization.processing.pipeline import Pipeline
from listen_finalization.processing.protocol import Processor
from listen_finalization.processing.slots import Slots
from listen_finalization.testing.processor import FakeProcessor

UID = "ada"
EMBEDDED = Policy(
    lease=seconds(15), handover=0, retry_floor=0, backoff=seconds(1), backoff_limit=seconds(60)
)
"""The policy of the embedded mode; `Policy()` is that of Cloud Tasks."""


class FakeLiveness:
    """Mints claim ids of named processes; a process is dead once its name is in `buried`."""

    def __init__(self, name: str | None = None, buried: set[str] | None = None) -> None:
        self.name = name or secrets.token_hex(8)
        self.buried = buried if buried is not None else set()

    def dead(self, claim_id: str) -> bool:
        return claim_id[:16] in self.buried

    def new_claim_id(self) -> str:
        return self.name + secrets.token_hex(8)

    def die(self) -> None:
        self.buried.add(self.name)


class FakeDispatcher:
    """Notes hand-overs as (job, delay in microseconds) and takes them, or not, or raises."""

    def __init__(self) -> None:
        self.handed: list[tuple[Job, int]] = []
        self.takes = True
        self.error: Exception | None = None

    async def hand_over(self, job: Job, *, delay: int = 0) -> bool:
        self.handed.append((job, delay))
        if self.error is not None:
            raise self.error
        return self.takes


class FakeSender:
    """Notes what leaves and answers each destination with its code, 2xx where none is set."""

    def __init__(self, codes: Mapping[str, EffectCode] | None = None) -> None:
        self.codes = dict(codes or {})
        self.sent: list[Sending] = []

    async def send(self, delivery: Sending) -> DeliveryResult:
        self.sent.append(delivery)
        return DeliveryResult(self.codes.get(delivery.destination.id, EffectCode.HTTP_2XX))

    def count(self, destination: str) -> int:
        return sum(one.destination.id == destination for one in self.sent)


class Workshop:
    """Store, admission and finalizer of one process; deliveries are the test's own."""

    def __init__(
        self,
        directory: Path,
        processor: Processor | None = None,
        *,
        policy: Policy = EMBEDDED,
        clock: Any = None,
        store: Store | None = None,
        sender: Sender | None = None,
        slots: int = 4,
        run_timeout: float = 60.0,
        liveness: FakeLiveness | None = None,
        run_lock: Callable[[Outbox, Liveness, Signals], RunLock] | None = None,
        wrapped: Callable[[Outbox], Outbox] = lambda outbox: outbox,
    ) -> None:
        """Open `listen.db` in the directory, unless a `store` is given.

        Everything but `store` works on `wrapped(outbox)`; `clock` is that of the file. A store that
        is given must be under the same policy. It is the caller's to close, and so is a run lock,
        which is made of the parts that it needs.
        """
        self.directory = directory
        self.policy = policy
        self._opened: list[SqliteStore] = []
        if store is None:
            self._opened = [SqliteStore(directory / "listen.db", policy, clock=clock)]
            store = self._opened[0]
        self.store: Any = store
        self.outbox = wrapped(self.store.outbox)
        self.conversations: Conversations = self.store.conversations
        self.destinations = Destinations(self.store.records)
        self.processor: Any = processor or FakeProcessor()
        self.sender: Any = sender or FakeSender()
        self.dispatcher = FakeDispatcher()
        self.liveness = liveness or FakeLiveness()
        self.signals = Signals()
        self.slots = Slots(slots)
        self.admission = Admission(self.outbox, self.dispatcher, self.signals)
        self.run_lock = run_lock and run_lock(self.outbox, self.liveness, self.signals)
        self.finalizer = Finalizer(
            self.outbox,
            Pipeline(self.processor, self.conversations, Fanout(self.destinations, self.sender)),
            self.dispatcher,
            self.liveness,
            self.slots,
            self.signals,
            lease=policy.lease,
            run_timeout=run_timeout,
            run_lock=self.run_lock,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.finalizer.close(0)
        for opened in self._opened:
            opened.close()

    async def spoken(
        self, key: str = "c1", *, text: str = "We ship on Friday.", byok: bool = False
    ) -> None:
        """Store one segment of a conversation."""
        said = Segment(f"{key}:{len(text)}", "Ada", 0.0, 2.0, text)
        await self.conversations.append(UID, key, [said], byok=byok)

    async def admitted(
        self, key: str = "c1", *, byok: bool = False, subscribers: int = 0, **admit: Any
    ) -> Job:
        """Speak, subscribe receivers (`d0` on) and admit; return the job."""
        await self.spoken(key, byok=byok)
        for number in range(subscribers):
            await self.destinations.add(UID, f"d{number}", f"https://receiver-{number}.example/")
        answer = await self.admission.admit(Admit(UID, key, **admit))
        assert isinstance(answer, Decision) and answer.job is not None
        return answer.job

    async def run(self, job: Job, **delivery: Any) -> Result:
        """Deliver the job's present generation and return what came of it."""
        present = await self.job(job)
        return await self.finalizer.run(
            Delivery(job.job_id, present.dispatch_generation, **delivery)
        )

    async def job(self, job: Job) -> Job:
        """Return the row as it stands."""
        found: Job | None = await self.store.outbox.get(job.job_id)
        assert found is not None
        return found

    async def record(self, key: str = "c1") -> Record:
        found = await self.conversations.find(UID, key)
        assert found is not None
        return found

    async def conversation(self, key: str = "c1") -> Conversation:
        return (await self.record(key)).conversation
