"""Accepting the end of a conversation: one transaction, then a hand-over outside it."""

from __future__ import annotations

import logging

from listen_finalization.domain.codes import Status, Verb
from listen_finalization.domain.commands import Admit
from listen_finalization.domain.decision import Answer, Decision
from listen_finalization.domain.job import Job
from listen_finalization.observe.signals import Event, Signals
from listen_finalization.ports import Dispatcher, Outbox


class Admission:
    """The one way in: customer routes, listen and sweeps all admit through it."""

    def __init__(self, outbox: Outbox, dispatcher: Dispatcher, signals: Signals) -> None:
        self._outbox = outbox
        self._dispatcher = dispatcher
        self._signals = signals

    async def admit(self, command: Admit) -> Answer:
        """Admit durably, then hand over; return the job or the refusal.

        A hand-over that fails is counted and left to the reconciler: the row keeps its due time.
        A repeat hands an unclaimed job over again, under the same task name. Raises `StoreError`
        where nothing is known to be written; the caller may send the same command again.
        """
        answer = await self._outbox.apply(command)
        if not isinstance(answer, Decision):
            self._signals.emit(Event.ADMISSION_REFUSED, code=answer.code)
            return answer
        job = answer.job
        if answer.changed and job is not None and answer.did is Verb.ADMIT:
            self._signals.emit(Event.JOB_ADMITTED, job_id=job.job_id)
        opened = answer.changed or (job is not None and job.lease_epoch == 0)
        if job is not None and opened and waits_for_worker(job):
            await hand_over(self._dispatcher, self._signals, job)
        return answer


def waits_for_worker(job: Job) -> bool:
    """Whether the job is queued for a worker that runs on the platform's keys."""
    return job.status is Status.QUEUED and not job.requires_byok


async def hand_over(dispatcher: Dispatcher, signals: Signals, job: Job, *, delay: int = 0) -> bool:
    """Hand the job's generation over; a failure of any kind is counted and changes nothing.

    What was committed stays so: the row has its due time, and the caller its answer.
    """
    fault: Exception | None = None
    try:
        taken = await dispatcher.hand_over(job, delay=delay)
    except Exception as error:  # noqa: BLE001 - a client of a queue may raise anything
        taken, fault = False, error
    if not taken:
        signals.emit(Event.ENQUEUE_FAILED, job_id=job.job_id, fault=fault, level=logging.WARNING)
    return taken
