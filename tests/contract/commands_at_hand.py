"""Every command that somebody might send for a row as it stands."""

from __future__ import annotations

from collections.abc import Mapping

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
    Abandon,
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
    Resend,
    StepResult,
)
from listen_finalization.domain.content import Memory
from listen_finalization.domain.job import Claim, Effect, Instant, Job

_ENRICH = Effect(Step.ENRICH, EffectState.DONE)


def of_owner(job: Job, who: str) -> Mapping[str, Command]:
    """Return what the owner might send; both of a pair speak for the same owner."""
    claim = Claim(job.job_id, job.dispatch_generation, job.lease_epoch, job.claim_id or "k1")
    results = (StepResult(Step.ENRICH, '{"title":"' + who + '"}'),)
    memories = (Memory(f"a fact of {who}"), Memory("a fact of both"))
    return {
        "renewal": Checkpoint(claim),
        "checkpoint": Checkpoint(claim, effects=(_ENRICH,), results=results, memories=memories),
        "complete": Complete(claim),
        "complete, discarding": Complete(claim, discard=True),
        "fail": Fail(claim, FailureCode.PROVIDER_ERROR),
        "fail for good": Fail(claim, FailureCode.PROVIDER_ERROR, task_retry=9),
        "release at shutdown": Release(claim, ReleaseCause.SHUTDOWN, FailureCode.SHUTDOWN),
        "release, environment": Release(
            claim, ReleaseCause.ENVIRONMENT, FailureCode.ENVIRONMENT_PROVIDER, delay=1_000
        ),
        "fence as owner": Fence(job.job_id, Actor.WORKER, claim),
    }


def of_others(uid: str, job: Job, who: str) -> Mapping[str, Command]:
    """Return what workers, the reconciler, sweeps, operators and sessions might send."""
    key, generation = job.job_id, job.dispatch_generation
    due = job.reconcile_after_at or Instant(0)
    told = Effect(Step.FANOUT, EffectState.DONE, "d1")
    return {
        "claim": ClaimJob(key, generation, who),
        "claim with keys": ClaimJob(
            key,
            generation,
            who,
            holds_keys=True,
            uid=uid,
            conversation_id=job.conversation_id,
        ),
        "claim from the dead": ClaimJob(key, generation, who, dead_claim=job.claim_id),
        "redispatch": Redispatch(key, generation),
        "requeue": Redispatch(key, generation, RedispatchCause.REQUEUE),
        "park": Park(key, generation),
        "present keys": PresentKeys(key, uid, job.conversation_id),
        "postpone": Postpone(key, generation, due, 5_000_000 if who == "a" else 6_000_000),
        "evict": Evict(key, generation, job.lease_epoch, who),
        "replay": Replay(key, generation, who),
        "resend": Resend(key, "d1", who),
        "note a resend": Resend(key, "d1", job.claim_id or who, told),
        "fence": Fence(key, Actor.SWEEP),
        "abandon": Abandon(key),
        "purge an account": Purge(key, PurgeCause.ACCOUNT),
        "purge by retention": Purge(key, PurgeCause.RETENTION),
    }
