"""Recognising a command on the row that it produced, by the id that it left there.

An unknown commit is resolved by sending the command again: it must then find its own work and
write nothing. Verbs without an entry are idempotent by their guards alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from listen_finalization.domain import guards
from listen_finalization.domain.codes import Outcome, RefusalCode, Status, Step, Verb
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
    PresentKeys,
    Redispatch,
    Release,
    Replay,
    Resend,
    verb_of,
)
from listen_finalization.domain.decision import Answer, Refused, unchanged
from listen_finalization.domain.job import Job

_SETTLING = {
    Verb.COMPLETE: frozenset({Verb.COMPLETE, Verb.FENCE}),
    Verb.FAIL: frozenset({Verb.FAIL, Verb.FENCE}),
    Verb.RELEASE: frozenset({Verb.RELEASE, Verb.FAIL, Verb.FENCE}),
}


_CLAIMING = frozenset({Verb.CLAIM, Verb.FENCE})
_ENDING = frozenset({Verb.PARK, Verb.REDISPATCH, Verb.FENCE})


def repeated(job: Job, command: Command) -> Answer | None:
    """Answer a command that the row already shows as done; None for every other."""
    recognise = _RECOGNISERS.get(type(command))
    return recognise(job, command) if recognise is not None else None


def _last(job: Job) -> Verb:
    return job.history[-1].verb


def _claim(job: Job, command: ClaimJob) -> Answer | None:
    if guards.claim_unused(job, command.claim_id):
        return None
    if job.dispatch_generation == command.generation and _last(job) in _CLAIMING:
        return unchanged(job, _last(job))
    return Refused(RefusalCode.CLAIM_LOST, job)


def _settled(job: Job, command: Complete | Fail | Release) -> Answer | None:
    claim = command.claim
    mine = (job.claim_id, job.lease_epoch) == (claim.claim_id, claim.epoch)
    if not mine or job.status is Status.LEASED or _last(job) not in _SETTLING[verb_of(command)]:
        return None
    return unchanged(job, _last(job))


def _requested(job: Job, command: Evict | Replay) -> Answer | None:
    asked = (verb_of(command), Verb.FENCE)
    if job.claim_id != command.request_id or _last(job) not in asked:
        return None
    return unchanged(job, _last(job))


def _resent(job: Job, command: Resend) -> Answer | None:
    effect = job.effect(Step.FANOUT, command.destination)
    if job.claim_id != command.request_id or effect is None:
        return None
    noted = command.result is not None
    return unchanged(job, Verb.RESEND) if effect.final is noted else None


def _minted(job: Job, command: Park | Redispatch) -> Answer | None:
    if job.terminal:
        same = job.dispatch_generation == command.generation
        return unchanged(job, _last(job)) if same and _last(job) in _ENDING else None
    minted = job.dispatch_generation == command.generation + 1
    return unchanged(job, _last(job)) if minted and _last(job) is verb_of(command) else None


def _fenced(job: Job, command: Fence | PresentKeys | Abandon | Checkpoint) -> Answer | None:
    if isinstance(command, Checkpoint) and job.claim_id != command.claim.claim_id:
        return None
    if isinstance(command, Abandon) and _last(job) is Verb.ABANDON:
        return unchanged(job, Verb.ABANDON)
    return unchanged(job, Verb.FENCE) if job.outcome is Outcome.FENCED else None


_RECOGNISERS: dict[type[Any], Callable[[Job, Any], Answer | None]] = {
    ClaimJob: _claim,
    Complete: _settled,
    Fail: _settled,
    Release: _settled,
    Evict: _requested,
    Replay: _requested,
    Resend: _resent,
    Park: _minted,
    Redispatch: _minted,
    Fence: _fenced,
    Abandon: _fenced,
    PresentKeys: _fenced,
    Checkpoint: _fenced,
}
