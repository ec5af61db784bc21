"""Scenarios of whole runs, by the parts that run in production: finalizer, pipeline, reconciler."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from listen_finalization.admission import Admission
from listen_finalization.dispatch.inline import InlineDispatcher
from listen_finalization.dispatch.remote import RemoteProcesses
from listen_finalization.domain.commands import Admit
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import Job
from listen_finalization.finalizer import Delivery, ResultKind
from listen_finalization.observe.signals import Signals
from listen_finalization.reconcile import Reconciler, Recovery
from listen_finalization.settings import Settings
from listen_finalization.stack.runs import Runs
from listen_finalization.testing.processor import FakeProcessor

from .operations import UID, Act, Bench, Scenario


async def _job_run(bench: Bench) -> Act:
    """A job of one process and a run of another's: a record, one memory, nobody to deliver to.

    The run ends before its first renewal is due.
    """
    await bench.say("new")
    signals = Signals()
    runs = Runs(
        Settings(firestore_project=bench.worker.project, firebase_project="people"),
        bench.worker.store,
        InlineDispatcher(),
        RemoteProcesses(),
        signals,
        processor=FakeProcessor(),
    )

    async def act() -> None:
        async with runs:
            job = await _admitted(bench, signals)
            result = await runs.finalizer.run(Delivery(job.job_id, job.dispatch_generation))
            assert result.kind is ResultKind.COMPLETED

    return act


async def _admitted(bench: Bench, signals: Signals) -> Job:
    admission = Admission(bench.api.store.outbox, InlineDispatcher(), signals)
    answer = await admission.admit(Admit(UID, "new"))
    assert isinstance(answer, Decision)
    assert answer.job is not None
    return answer.job


async def _round(bench: Bench) -> Act:
    """A round of the reconciler that finds nothing due; not the first one ever."""
    reconciler = Reconciler(
        bench.worker.store.outbox,
        bench.worker.store.records,
        InlineDispatcher(),
        Signals(),
        recovery=Recovery.HAND_OVER,
    )
    await reconciler.run_once(force=True)
    return lambda: reconciler.run_once(force=True)


WHOLE_RUNS: Mapping[str, Scenario] = MappingProxyType(
    {"job_run": _job_run, "round_without_due_rows": _round}
)
