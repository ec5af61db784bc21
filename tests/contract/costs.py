"""One scenario for every verb, prepared for `size` conversations and then sent as one batch.

Run as a program it marks its scenarios for `strace`: `python -m contract.costs DIRECTORY`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from listen_finalization.domain.codes import (
    Actor,
    EffectState,
    FailureCode,
    PurgeCause,
    RedispatchCause,
    ReleaseCause,
    Step,
)
from listen_finalization.domain.commands import (
    Admit,
    Checkpoint,
    ClaimJob,
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
from listen_finalization.outbox.engine import SqliteEngine
from listen_finalization.outbox.operations import Append, DeleteConversation, Operation, PutRow

UID = "user"
ENRICHED = (Effect(Step.ENRICH, EffectState.DONE),)
REMEMBERED = (Effect(Step.MEMORIES, EffectState.DONE),)
ADMIT_KEYS: Mapping[str, Any] = MappingProxyType({"holds_keys": True})


@dataclass
class Bench:
    """An engine under a clock set by hand; its batches are of one kind of operation each."""

    path: Path
    size: int
    now: int = 1_700_000_000_000_000
    engine: SqliteEngine = field(init=False)

    def __post_init__(self) -> None:
        """Open the store; the first commit after a checkpoint flushes the WAL's new head too."""
        self.engine = SqliteEngine(self.path, POLICY, clock=lambda: Instant(self.now))
        self.send([PutRow("flag", "first", {}, 0)])

    @property
    def names(self) -> list[str]:
        return [f"conversation-{number}" for number in range(self.size)]

    def send(self, operations: Sequence[Operation]) -> list[Any]:
        self.now += 1_000
        return self.engine.apply_batch(operations)

    def jobs(self, operations: Sequence[Operation]) -> list[Job]:
        answers = self.send(operations)
        assert all(isinstance(a, Decision) and a.changed for a in answers), answers
        return [answer.job for answer in answers]

    def talked(self, number: int = 1, *, byok: bool = False) -> None:
        segments = (Segment(f"s{number}", "a", 0.0, 1.0, "words"),)
        self.send([Append(UID, name, segments, byok=byok) for name in self.names])

    def admitted(self, *, byok: bool = False, **fields: Any) -> list[Job]:
        self.talked(byok=byok)
        return self.jobs([Admit(UID, name, **fields) for name in self.names])

    def leased(self) -> list[Job]:
        return self.jobs([_claim(job) for job in self.admitted()])

    def enriched(self) -> list[Job]:
        return self.jobs([_enrich(job) for job in self.leased()])

    def buried(self) -> list[Job]:
        return self.jobs([_bury(job) for job in self.leased()])

    def completed(self) -> list[Job]:
        return self.jobs([Complete(job.claim) for job in self.enriched()])


def _claim(job: Job) -> ClaimJob:
    return ClaimJob(job.job_id, job.dispatch_generation, f"claim-{job.job_id}")


def _enrich(job: Job) -> Checkpoint:
    return Checkpoint(job.claim, effects=ENRICHED, results=(StepResult(Step.ENRICH, "{}"),))


def _remember(job: Job) -> Checkpoint:
    memories = (Memory("one " + job.job_id), Memory("two " + job.job_id))
    return Checkpoint(job.claim, effects=REMEMBERED, memories=memories)


def _bury(job: Job) -> Fail:
    return Fail(job.claim, FailureCode.PROVIDER_ERROR, task_retry=POLICY.max_attempts)


def _each(jobs: Sequence[Job], make: Callable[[Job], Operation]) -> list[Operation]:
    return [make(job) for job in jobs]


def _append(bench: Bench) -> list[Operation]:
    segments = tuple(Segment(f"s{n}", "a", n, n + 1.0, "words") for n in range(3))
    return [Append(UID, name, segments) for name in bench.names]


def _append_repeat(bench: Bench) -> list[Operation]:
    bench.send(_append(bench))
    return _append(bench)


def _admit_fresh(bench: Bench) -> list[Operation]:
    bench.talked()
    return [Admit(UID, name) for name in bench.names]


def _admit_repeat(bench: Bench) -> list[Operation]:
    bench.admitted()
    return [Admit(UID, name) for name in bench.names]


def _admit_next_revision(bench: Bench) -> list[Operation]:
    bench.completed()
    bench.talked(2)
    return [Admit(UID, name) for name in bench.names]


def _complete_with_successor(bench: Bench) -> list[Operation]:
    jobs = bench.enriched()
    bench.talked(2)
    bench.send([Admit(UID, name) for name in bench.names])
    return _each(jobs, lambda job: Complete(job.claim))


def _park(bench: Bench) -> list[Operation]:
    jobs = bench.admitted(**ADMIT_KEYS)
    bench.now += POLICY.session_limit
    return _each(jobs, lambda job: Park(job.job_id, 1))


def _fence(bench: Bench) -> list[Operation]:
    jobs = bench.admitted()
    bench.send([DeleteConversation(UID, name) for name in bench.names])
    return _each(jobs, lambda job: Fence(job.job_id, Actor.SWEEP))


def _postpone(bench: Bench) -> list[Operation]:
    def later(job: Job) -> Postpone:
        return Postpone(job.job_id, 1, Instant(job.reconcile_after_at or 0), 5_000_000)

    return _each(bench.admitted(), later)


def _release(bench: Bench) -> list[Operation]:
    cause, code = ReleaseCause.ENVIRONMENT, FailureCode.ENVIRONMENT_PROVIDER
    return _each(bench.leased(), lambda job: Release(job.claim, cause, code))


def _fail(bench: Bench) -> list[Operation]:
    return _each(bench.leased(), lambda job: Fail(job.claim, FailureCode.PROVIDER_ERROR))


def _present_keys(bench: Bench) -> list[Operation]:
    jobs = bench.admitted(byok=True)
    return _each(jobs, lambda job: PresentKeys(job.job_id, UID, job.conversation_id))


def _redispatch(bench: Bench) -> list[Operation]:
    requeue = RedispatchCause.REQUEUE
    return _each(bench.admitted(), lambda job: Redispatch(job.job_id, 1, requeue))


def _evict(bench: Bench) -> list[Operation]:
    return _each(bench.leased(), lambda job: Evict(job.job_id, 1, 1, f"r-{job.job_id}"))


def _put_record(bench: Bench) -> list[Operation]:
    return [PutRow("flag", name, {"n": 1}, 0) for name in bench.names]


SCENARIOS: Mapping[str, Callable[[Bench], list[Operation]]] = MappingProxyType(
    {
        "append_three_segments": _append,
        "append_repeated": _append_repeat,
        "admit_fresh": _admit_fresh,
        "admit_repeated": _admit_repeat,
        "admit_next_revision": _admit_next_revision,
        "claim": lambda bench: _each(bench.admitted(), _claim),
        "claim_repeated": lambda bench: _each(bench.leased(), _claim),
        "renewal": lambda bench: _each(bench.leased(), lambda job: Checkpoint(job.claim)),
        "checkpoint_with_effect_and_result": lambda bench: _each(bench.leased(), _enrich),
        "checkpoint_with_two_memories": lambda bench: _each(bench.leased(), _remember),
        "complete": lambda bench: _each(bench.enriched(), lambda job: Complete(job.claim)),
        "complete_with_successor": _complete_with_successor,
        "fail": _fail,
        "fail_to_dead_letter": lambda bench: _each(bench.leased(), _bury),
        "fence": _fence,
        "release": _release,
        "present_keys": _present_keys,
        "park": _park,
        "redispatch": _redispatch,
        "postpone": _postpone,
        "evict": _evict,
        "replay": lambda bench: _each(
            bench.buried(), lambda job: Replay(job.job_id, 1, f"r-{job.job_id}")
        ),
        "purge": lambda bench: _each(
            bench.completed(), lambda job: Purge(job.job_id, PurgeCause.ACCOUNT)
        ),
        "put_record": _put_record,
        "delete_conversation": lambda bench: [
            DeleteConversation(UID, job.conversation_id) for job in bench.admitted()
        ],
    }
)
SIZES = (1, 64)


def _mark(text: str) -> None:
    """Leave a line in the trace: a question about a file that does not exist."""
    os.access(f"MARK:{text}", os.F_OK)


def main(home: Path) -> None:
    """Send every scenario, marked."""
    for name, prepare in SCENARIOS.items():
        for size in SIZES:
            bench = Bench(home / f"{name}-{size}.db", size)
            operations = prepare(bench)
            _mark(f"{name}:{size}")
            bench.send(operations)
            _mark("end")
            bench.engine.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
