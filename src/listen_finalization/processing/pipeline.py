"""The steps of a run under its lease: enrich, memories, fanout."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from listen_finalization.domain.codes import EffectCode, EffectState, FailureCode, Step
from listen_finalization.domain.commands import StepResult
from listen_finalization.domain.content import Content, Enrichment
from listen_finalization.domain.job import Effect
from listen_finalization.errors import KeysRejectedError
from listen_finalization.lease import Lease
from listen_finalization.ports import Conversations
from listen_finalization.processing import records
from listen_finalization.processing.fanout import Fanout
from listen_finalization.processing.protocol import Processor, Request
from listen_finalization.processing.slots import Slot


@dataclass(frozen=True, slots=True)
class Done:
    """All steps are done; `discard` says that the conversation is not worth keeping."""

    discard: bool = False


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The attempt ends here with a failure of this job's own."""

    code: FailureCode


End = Done | Unfinished


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its lease, its thread and its deadline (of `time.monotonic`)."""

    lease: Lease
    slot: Slot
    deadline: float
    keys: Mapping[str, str] | None = None


class MarkedByokError(KeysRejectedError):
    """The conversation was marked as BYOK after its job was claimed without keys."""

    def __init__(self) -> None:
        super().__init__(FailureCode.KEYS_MISSING)


class Pipeline:
    """Runs what is not stored yet; each result is stored before the next step begins."""

    def __init__(
        self,
        processor: Processor,
        conversations: Conversations,
        fanout: Fanout,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._processor = processor
        self._conversations = conversations
        self._fanout = fanout
        self._monotonic = monotonic

    async def run(self, run: Run) -> End:
        """Carry the job as far as it goes.

        Raises `StepFailedError`, `EnvironmentFaultError`, `KeysRejectedError`, the errors of
        `Lease.prove`, and whatever a processor of the user's own raises.
        """
        job = run.lease.job
        content = await self._conversations.content(job.uid, job.conversation_id)
        if content is None:
            return Done()
        if content.requires_byok and not run.keys:
            raise MarkedByokError
        stored = await self._conversations.results(job.job_id) if job.effects else {}
        enrichment = await self._enriched(run, content, stored)
        if enrichment is None or enrichment.discard:
            return Done(discard=enrichment is not None)
        payload = await self._remembered(run, content, enrichment, stored)
        return await self._sent(run, records.encoded(enrichment), payload)

    async def _enriched(
        self, run: Run, content: Content, stored: Mapping[tuple[Step, int], str]
    ) -> Enrichment | None:
        held = stored.get((Step.ENRICH, 0))
        effect = run.lease.job.effect(Step.ENRICH)
        code = effect.code if effect is not None else None
        if held is not None:
            return replace(records.decoded(held), discard=code is EffectCode.DISCARDED)
        if code is EffectCode.EMPTY:
            return None
        given = await run.slot.call(self._processor.enrich, self._request(run, content))
        if given is None:
            await run.lease.prove((Effect(Step.ENRICH, EffectState.DONE, code=EffectCode.EMPTY),))
            return None
        return await self._store_record(run, records.checked(given))

    async def _store_record(self, run: Run, given: Enrichment) -> Enrichment:
        discard = given.discard and not run.lease.job.force_process
        record, shortened = records.bounded(replace(given, discard=discard))
        code = EffectCode.RESULT_SHORTENED if shortened else EffectCode.STORED
        effect = Effect(
            Step.ENRICH, EffectState.DONE, code=EffectCode.DISCARDED if discard else code
        )
        result = StepResult(Step.ENRICH, records.encoded(record))
        await run.lease.prove((effect,), (result,))
        return record

    async def _remembered(
        self,
        run: Run,
        content: Content,
        enrichment: Enrichment,
        stored: Mapping[tuple[Step, int], str],
    ) -> str:
        """Store the memories with the plan of deliveries; return their stored form."""
        held = stored.get((Step.MEMORIES, 0))
        if held is not None:
            return held
        request = self._request(run, content)
        given = await run.slot.call(self._processor.memories, request, enrichment)
        memories = records.checked_memories(given)
        payload = records.encoded_memories(memories)
        planned = await self._fanout.planned(run.lease.job)
        effect = Effect(Step.MEMORIES, EffectState.DONE, code=EffectCode.STORED)
        result = StepResult(Step.MEMORIES, payload)
        await run.lease.prove((effect, *planned), (result,), memories)
        return payload

    async def _sent(self, run: Run, record: str, memories: str) -> End:
        body = records.webhook_body(run.lease.job, record, memories)
        settled = await self._fanout.send(run.lease, body)
        return Done() if settled else Unfinished(FailureCode.DELIVERY_FAILED)

    def _request(self, run: Run, content: Content) -> Request:
        remaining = max(run.deadline - self._monotonic(), 0.0)
        return Request(
            content=content,
            force_process=run.lease.job.force_process,
            timeout=remaining,
            keys=run.keys,
            job_id=run.lease.claim.job_id,
            claim=run.lease.claim.epoch,
        )
