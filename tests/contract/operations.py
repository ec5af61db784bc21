"""One scenario for each verb and path of the production store, to be counted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

from listen_finalization.domain.codes import (
    Actor,
    EffectState,
    FailureCode,
    PurgeCause,
    RedispatchCause,
    ReleaseCause,
    Status,
    Step,
)
from listen_finalization.domain.commands import (
    Admit,
    Checkpoint,
    ClaimJob,
    Command,
    Complete,
    Evict,
    Fail,
    Fence,
    Park,
    Postpone,
    PresentKeys,
    Purge,
    Redispatch,
    Release,
    Replay,
    StepResult,
)
from listen_finalization.domain.content import Memory, Segment
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import Effect, Instant, Job
from listen_finalization.outbox.conformance import POLICY

from .firestore_subject import FirestoreSubject

UID = "ada"
ENRICHED = (Effect(Step.ENRICH, EffectState.DONE),)
REMEMBERED = (Effect(Step.MEMORIES, EffectState.DONE),)


class Bench:
    """The store as two processes have it: `api` speaks and admits, `worker` does the rest.

    Each knows the places only of what went through itself, as in production.
    """

    def __init__(self, api: FirestoreSubject, worker: FirestoreSubject) -> None:
        self.api = api
        self.worker = worker
        self._names = iter(f"conversation-{number}" for number in range(100))

    def advance(self, micros: int) -> None:
        self.api.advance(micros)
        self.worker.advance(micros)

    async def say(self, name: str, number: int = 1, *, byok: bool = False) -> None:
        said = Segment(f"s{number}", "a", 0.0, 1.0, "words")
        await self.api.conversations.append(UID, name, [said], byok=byok)

    async def moved(self, command: Command) -> Job:
        """Apply a command, an admission by the api; it must change the row."""
        subject = self.api if isinstance(command, Admit) else self.worker
        answer = await subject.outbox.apply(command)
        assert isinstance(answer, Decision)
        assert answer.changed
        assert answer.job is not None
        return answer.job

    async def admitted(self, *, byok: bool = False, **options: Any) -> Job:
        name = next(self._names)
        await self.say(name, byok=byok)
        return await self.moved(Admit(UID, name, **options))

    async def leased(self) -> Job:
        return await self.moved(claim(await self.admitted()))

    async def enriched(self) -> Job:
        return await self.moved(enrich(await self.leased()))

    async def completed(self) -> Job:
        return await self.moved(Complete((await self.enriched()).claim))

    async def buried(self) -> Job:
        return await self.moved(bury(await self.leased()))


def claim(job: Job) -> ClaimJob:
    return ClaimJob(job.job_id, job.dispatch_generation, f"claim-{job.lease_epoch + 1}")


def enrich(job: Job) -> Checkpoint:
    return Checkpoint(job.claim, effects=ENRICHED, results=(StepResult(Step.ENRICH, "{}"),))


def bury(job: Job) -> Fail:
    return Fail(job.claim, FailureCode.PROVIDER_ERROR, task_retry=POLICY.max_attempts)


Act = Callable[[], Awaitable[object]]
Scenario = Callable[[Bench], Awaitable[Act]]


def _verb(start: Callable[[Bench], Awaitable[Job]], make: Callable[[Job], Command]) -> Scenario:
    """Return the scenario of one command on a row that `start` brings about."""

    async def scenario(bench: Bench) -> Act:
        job = await start(bench)
        return lambda: bench.moved(make(job))

    return scenario


async def _append_first(bench: Bench) -> Act:
    return lambda: bench.say("new")


async def _append_more(bench: Bench) -> Act:
    await bench.say("new")
    return lambda: bench.say("new", 2)


async def _append_repeated(bench: Bench) -> Act:
    await bench.say("new")
    return lambda: bench.say("new")


async def _admit_fresh(bench: Bench) -> Act:
    await bench.say("new")
    return lambda: bench.moved(Admit(UID, "new"))


async def _admit_repeated(bench: Bench) -> Act:
    job = await bench.admitted()
    return lambda: bench.api.outbox.apply(Admit(UID, job.conversation_id))


async def _admit_repeated_elsewhere(bench: Bench) -> Act:
    job = await bench.admitted()
    return lambda: bench.worker.outbox.apply(Admit(UID, job.conversation_id))


async def _admit_next_revision(bench: Bench) -> Act:
    job = await bench.completed()
    await bench.say(job.conversation_id, 2)
    return lambda: bench.moved(Admit(UID, job.conversation_id))


async def _claim_repeated(bench: Bench) -> Act:
    job = await bench.admitted()
    await bench.moved(claim(job))
    return lambda: bench.worker.outbox.apply(claim(job))


async def _claim_seen(bench: Bench) -> Act:
    job = await bench.leased()
    failed = await bench.moved(Fail(job.claim, FailureCode.PROVIDER_ERROR))
    return lambda: bench.moved(claim(failed))


async def _complete_with_successor(bench: Bench) -> Act:
    job = await bench.enriched()
    await bench.say(job.conversation_id, 2)
    await bench.api.outbox.apply(Admit(UID, job.conversation_id))
    return lambda: bench.moved(Complete(job.claim))


async def _park(bench: Bench) -> Act:
    job = await bench.admitted(holds_keys=True)
    bench.advance(POLICY.session_limit)
    return lambda: bench.moved(Park(job.job_id, 1))


async def _fence(bench: Bench) -> Act:
    job = await bench.admitted()
    await bench.api.conversations.delete(UID, job.conversation_id)
    return lambda: bench.moved(Fence(job.job_id, Actor.SWEEP))


async def _poll(bench: Bench) -> Act:
    job = await bench.admitted()
    return lambda: bench.api.outbox.find(UID, job.conversation_id)


async def _poll_elsewhere(bench: Bench) -> Act:
    job = await bench.admitted()
    return lambda: bench.worker.outbox.find(UID, job.conversation_id)


def _asked(ask: Callable[[FirestoreSubject], Awaitable[object]], rows: int) -> Scenario:
    """Return the scenario of a question to a store with so many queued jobs, all of them due."""

    async def scenario(bench: Bench) -> Act:
        for _ in range(rows):
            await bench.admitted()
        bench.advance(3_600_000_000)
        return lambda: ask(bench.worker)

    return scenario


async def _job(bench: Bench) -> Act:
    """A whole job as its owner pays for it, renewals and stored steps apart."""
    await bench.say("new")

    async def act() -> None:
        job = await bench.moved(Admit(UID, "new"))
        job = await bench.moved(claim(job))
        await bench.moved(Complete(job.claim))

    return act


async def _job_with_steps(bench: Bench) -> Act:
    """The same with its record and two memories stored, nobody to deliver to, in under 20 s."""
    await bench.say("new")

    async def act() -> None:
        job = await bench.moved(Admit(UID, "new"))
        job = await bench.moved(claim(job))
        await bench.worker.conversations.content(UID, "new")
        job = await bench.moved(enrich(job))
        job = await bench.moved(_remember(job))
        await bench.moved(Complete(job.claim))

    return act


def _remember(job: Job) -> Checkpoint:
    memories = (Memory("one"), Memory("two"))
    result = (StepResult(Step.MEMORIES, "[]"),)
    return Checkpoint(job.claim, effects=REMEMBERED, results=result, memories=memories)


def _release(job: Job) -> Release:
    return Release(job.claim, ReleaseCause.ENVIRONMENT, FailureCode.ENVIRONMENT_PROVIDER)


def _postpone(job: Job) -> Postpone:
    return Postpone(job.job_id, 1, Instant(job.reconcile_after_at or 0), 5_000_000)


async def _reading(bench: Bench) -> Act:
    job = await bench.leased()
    return lambda: bench.worker.conversations.content(UID, job.conversation_id)


async def _purge(bench: Bench) -> Act:
    job = await bench.completed()
    return lambda: bench.worker.outbox.apply(Purge(job.job_id, PurgeCause.ACCOUNT))


SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        "append_first": _append_first,
        "append_more": _append_more,
        "append_repeated": _append_repeated,
        "admit_fresh": _admit_fresh,
        "admit_repeated": _admit_repeated,
        "admit_repeated_elsewhere": _admit_repeated_elsewhere,
        "admit_next_revision": _admit_next_revision,
        "claim_first_sight": _verb(Bench.admitted, claim),
        "claim_seen": _claim_seen,
        "claim_repeated": _claim_repeated,
        "renewal": _verb(Bench.leased, lambda job: Checkpoint(job.claim)),
        "checkpoint_with_effect": _verb(
            Bench.leased, lambda job: Checkpoint(job.claim, effects=ENRICHED)
        ),
        "checkpoint_with_step": _verb(Bench.leased, enrich),
        "checkpoint_with_step_and_two_memories": _verb(Bench.leased, _remember),
        "read_content": _reading,
        "complete_without_steps": _verb(Bench.leased, lambda job: Complete(job.claim)),
        "complete": _verb(Bench.enriched, lambda job: Complete(job.claim)),
        "complete_with_successor": _complete_with_successor,
        "fail": _verb(Bench.leased, lambda job: Fail(job.claim, FailureCode.PROVIDER_ERROR)),
        "fail_to_dead_letter": _verb(Bench.leased, bury),
        "release": _verb(Bench.leased, _release),
        "redispatch": _verb(
            Bench.admitted, lambda job: Redispatch(job.job_id, 1, RedispatchCause.REQUEUE)
        ),
        "park": _park,
        "fence": _fence,
        "evict": _verb(Bench.leased, lambda job: Evict(job.job_id, 1, 1, "r")),
        "postpone": _verb(Bench.admitted, _postpone),
        "present_keys": _verb(
            lambda bench: bench.admitted(byok=True),
            lambda job: PresentKeys(job.job_id, UID, job.conversation_id),
        ),
        "replay": _verb(Bench.buried, lambda job: Replay(job.job_id, 1, "r")),
        "purge": _purge,
        "status_poll": _poll,
        "status_poll_first_sight": _poll_elsewhere,
        "due_page_empty": _asked(lambda subject: subject.outbox.due(100), 0),
        "due_page_of_three": _asked(lambda subject: subject.outbox.due(100), 3),
        "counts": _asked(lambda subject: subject.outbox.counts(), 3),
        "oldest": _asked(lambda subject: subject.outbox.oldest(), 3),
        "list_page_of_three": _asked(
            lambda subject: subject.outbox.list(status=Status.QUEUED, limit=3), 3
        ),
        "record_put": _asked(
            lambda subject: subject.records.put_if("flag", "a", {"n": 1}, version=0), 0
        ),
        "job": _job,
        "job_with_steps": _job_with_steps,
    }
)
