"""From what was found to what a customer is shown; no destination, claim or process is named."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Literal

from listen_finalization.domain.codes import EffectState, Step
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.job import Instant, Job
from listen_finalization.http.finalization import Finalization
from listen_finalization.http.models import (
    ConversationAnswer,
    FinalizationAnswer,
    FinalizeAnswer,
    MemoryAnswer,
    RecordAnswer,
    StepAnswer,
)
from listen_finalization.ports import Record

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def conversation_answer(conversation: Conversation) -> ConversationAnswer:
    return ConversationAnswer(
        id=conversation.conversation_id,
        status=conversation.status.value,
        discarded=conversation.discarded,
    )


def finalize_answer(found: Finalization) -> FinalizeAnswer:
    conversation = conversation_answer(found.conversation)
    return FinalizeAnswer(conversation=conversation, job_id=found.job_id, status=found.standing)


def record_answer(record: Record) -> RecordAnswer:
    structured = None if record.structured is None else dict(record.structured)
    memories = [MemoryAnswer(text=m.text, segment_ids=list(m.segment_ids)) for m in record.memories]
    conversation = conversation_answer(record.conversation)
    return RecordAnswer(conversation=conversation, structured=structured, memories=memories)


def finalization_answer(found: Finalization, *, max_attempts: int) -> FinalizationAnswer:
    """Build the answer of contract 11; what only the job's row knows is null without one."""
    job = found.job
    return FinalizationAnswer(
        job_id=found.job_id,
        status=found.standing,
        terminal=found.terminal,
        retryable=found.retryable,
        attempt_count=job.attempt_count if job else None,
        max_attempts=max_attempts,
        dispatch_generation=job.dispatch_generation if job else None,
        last_task_retry=job.last_task_retry if job else None,
        failure_code=job.failure_code if job else None,
        outcome=found.outcome,
        created_at=written(job.created_at) if job else None,
        updated_at=written(job.updated_at) if job else None,
        next_attempt_at=written(found.next_attempt_at),
        poll_after_seconds=found.poll_after,
        steps=_steps(job) if job else [],
        deliveries=_deliveries(job) if job else None,
    )


def written(instant: Instant | None) -> str | None:
    """Write an instant as RFC 3339 in UTC, always with microseconds."""
    if instant is None:
        return None
    moment = _EPOCH + timedelta(microseconds=instant)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _steps(job: Job) -> list[StepAnswer]:
    states = {
        Step.ENRICH: _state(job, Step.ENRICH),
        Step.MEMORIES: _state(job, Step.MEMORIES),
        Step.FANOUT: _fanout(job),
    }
    return [StepAnswer(step=step, state=state) for step, state in states.items()]


StepState = EffectState | Literal["skipped"]


def _state(job: Job, step: Step) -> StepState:
    effect = job.effect(step)
    if effect is not None:
        return effect.state
    return "skipped" if job.terminal else EffectState.PENDING


def _fanout(job: Job) -> StepState:
    """Return the state of all deliveries together: the least advanced one's."""
    states = {effect.state for effect in job.deliveries}
    if not states:
        planned = _state(job, Step.MEMORIES)
        return EffectState.DONE if planned is EffectState.DONE else planned
    order = (EffectState.PENDING, EffectState.SENT, EffectState.DROPPED, EffectState.DONE)
    return next(state for state in order if state in states)


def _deliveries(job: Job) -> dict[EffectState, int]:
    counted = Counter(effect.state for effect in job.deliveries)
    return {state: counted[state] for state in EffectState}
