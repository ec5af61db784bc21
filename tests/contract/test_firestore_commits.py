"""Commits that fail, vanish or come too late: the production store ends with one answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest

from listen_finalization.domain.codes import (
    EffectState,
    FailureCode,
    Outcome,
    PurgeCause,
    RefusalCode,
    Status,
    Step,
)
from listen_finalization.domain.commands import (
    Checkpoint,
    Command,
    Complete,
    Fail,
    Postpone,
    Purge,
    Replay,
    StepResult,
)
from listen_finalization.domain.content import Memory
from listen_finalization.domain.decision import Refused
from listen_finalization.domain.identity import job_id
from listen_finalization.domain.job import Effect, Instant
from listen_finalization.errors import StoreBusyError, StoreError, StoreUnavailableError
from listen_finalization.outbox.conformance.subject import (
    CONVERSATION,
    POLICY,
    UID,
    admit,
    admitted,
    claim_of,
    conversation,
    decided,
    held,
    leased,
    moved,
    record,
    row,
    talk,
)
from listen_finalization.outbox.firestore import FirestoreStore, attempts, rpc
from listen_finalization.ports import Row

from .firestore_line import Line
from .firestore_subject import FirestoreSubject

pytestmark = pytest.mark.xdist_group("firestore")

ENRICHED = (Effect(Step.ENRICH, EffectState.DONE),)
RECORD = '{"title":"Ship"}'
Asked = Callable[[FirestoreSubject], Awaitable[Command]]


async def _admission(subject: FirestoreSubject) -> Command:
    await talk(subject)
    return admit()


async def _claim(subject: FirestoreSubject) -> Command:
    return claim_of(await admitted(subject))


async def _checkpoint(subject: FirestoreSubject) -> Command:
    job = await leased(subject)
    results = (StepResult(Step.ENRICH, RECORD),)
    return Checkpoint(job.claim, effects=ENRICHED, results=results, memories=(Memory("a fact"),))


async def _completion(subject: FirestoreSubject) -> Command:
    checkpoint = await _checkpoint(subject)
    return Complete((await moved(subject, checkpoint)).claim)


async def _postponement(subject: FirestoreSubject) -> Command:
    job = await admitted(subject)
    return Postpone(job.job_id, 1, held(job.reconcile_after_at), 5_000_000)


@pytest.mark.parametrize("lost", ["request", "answer"])
@pytest.mark.parametrize("asked", [_admission, _claim, _checkpoint, _completion, _postponement])
async def test_lost_commit_of_a_command_has_one_effect_and_its_own_answer(
    firestore: FirestoreSubject, asked: Asked, lost: str
) -> None:
    command = await asked(firestore)
    line = Line(firestore)
    line.lose(lost)
    decision = await decided(firestore, command)
    after = held(decision.job)
    assert decision.changed
    assert await row(firestore, after.job_id) == after
    assert after.lease_epoch <= 1
    assert await firestore.job_count() == 1
    assert len(line.commits) == (2 if lost == "request" else 1)


async def test_lost_answer_of_a_purge_is_a_purge(firestore: FirestoreSubject) -> None:
    job = await admitted(firestore)
    Line(firestore).lose("answer")
    answer = await decided(firestore, Purge(job.job_id, PurgeCause.ACCOUNT))
    assert (answer.job, answer.changed) == (None, True)


async def test_transition_by_somebody_else_is_not_taken_for_an_own_lost_one(
    firestore: FirestoreSubject,
) -> None:
    job = await admitted(firestore)
    line = Line(firestore)
    line.lose("request")
    line.before_commit(lambda: firestore.outbox.apply(claim_of(job, "claim-2")))
    answer = await firestore.outbox.apply(claim_of(job))
    assert isinstance(answer, Refused)
    assert answer.code is RefusalCode.LEASE_HELD


async def test_wish_whose_commit_was_lost_is_noted(firestore: FirestoreSubject) -> None:
    await leased(firestore)
    await talk(firestore, number=2)
    Line(firestore).lose("request")
    await decided(firestore, admit())
    assert (await conversation(firestore)).wanted_version == 2


@pytest.mark.parametrize("lost", ["request", "answer"])
async def test_lost_put_is_written_once_and_answered(
    firestore: FirestoreSubject, lost: str
) -> None:
    put, line = firestore.records.put_if, Line(firestore)
    line.lose(lost)
    made = held(await put("flag", "k", {"n": 1}, version=0))
    line.lose(lost)
    after = held(await put("flag", "k", {"n": 2}, version=made.version))
    assert after == Row("k", {"n": 2}, made.version + 1)
    assert await firestore.records.get("flag", "k") == after


async def test_put_that_somebody_else_overtook_is_refused(firestore: FirestoreSubject) -> None:
    put, line = firestore.records.put_if, Line(firestore)
    made = held(await put("flag", "k", {"n": 1}, version=0))
    line.lose("request")
    line.before_commit(lambda: put("flag", "k", {"n": 2}, version=made.version))
    assert await put("flag", "k", {"n": 2}, version=made.version) is None


async def test_lost_answer_of_a_deletion_is_a_deletion(firestore: FirestoreSubject) -> None:
    await firestore.records.put_if("flag", "k", {}, version=0)
    await talk(firestore)
    line = Line(firestore)
    line.lose("answer")
    assert await firestore.records.delete("flag", "k")
    line.lose("answer")
    assert await firestore.conversations.delete(UID, CONVERSATION)


async def test_deletion_that_somebody_else_made_first_is_theirs(
    firestore: FirestoreSubject,
) -> None:
    await firestore.records.put_if("flag", "k", {}, version=0)
    await talk(firestore)
    line = Line(firestore)
    line.before_commit(lambda: firestore.records.delete("flag", "k"))
    assert not await firestore.records.delete("flag", "k")
    line.before_commit(lambda: firestore.conversations.delete(UID, CONVERSATION))
    assert not await firestore.conversations.delete(UID, CONVERSATION)


async def test_of_two_purges_one_is_a_change(firestore: FirestoreSubject) -> None:
    job = await admitted(firestore)
    purge = Purge(job.job_id, PurgeCause.ACCOUNT)
    Line(firestore).before_commit(lambda: firestore.outbox.apply(purge))
    answer = await decided(firestore, purge)
    assert (answer.job, answer.changed) == (None, False)


async def test_photo_of_a_lost_append_is_counted_once(firestore: FirestoreSubject) -> None:
    append = firestore.conversations.append
    await talk(firestore)
    line = Line(firestore)
    for lost in ("answer", "request"):
        line.lose(lost)
        await append(UID, CONVERSATION, [], photos=1)
    found = held(await firestore.conversations.content(UID, CONVERSATION))
    assert (found.photo_count, found.content_version) == (2, 3)


async def test_lost_answer_of_set_aside_is_told_as_moved(firestore: FirestoreSubject) -> None:
    job = await admitted(firestore)
    Line(firestore).lose("answer")
    seen = held(job.reconcile_after_at)
    assert await firestore.outbox.set_aside(job.job_id, seen, 1_000_000)
    assert not await firestore.outbox.set_aside(job.job_id, seen, 1_000_000)


async def test_claim_sees_a_deletion_that_came_before_its_commit(
    firestore: FirestoreSubject,
) -> None:
    job = await admitted(firestore)
    await _taken_away(firestore)
    after = await moved(firestore, claim_of(job))
    assert after.outcome is Outcome.FENCED


async def test_checkpoint_with_results_sees_a_deletion_that_came_before_its_commit(
    firestore: FirestoreSubject,
) -> None:
    checkpoint = await _checkpoint(firestore)
    await _taken_away(firestore)
    after = await moved(firestore, checkpoint)
    assert after.outcome is Outcome.FENCED
    assert await firestore.conversations.results(after.job_id) == {}
    assert (await record(firestore)).memories == ()


async def _taken_away(firestore: FirestoreSubject) -> None:
    """Let the application delete the conversation right before the next commit."""
    fields = {"deleted": True}
    Line(firestore).before_commit(lambda: firestore.set_conversation(UID, CONVERSATION, fields))


async def test_claim_reads_what_was_appended_before_its_commit(
    firestore: FirestoreSubject,
) -> None:
    job = await admitted(firestore)
    line = Line(firestore)
    line.before_commit(lambda: talk(firestore, number=2))
    after = await moved(firestore, claim_of(job))
    assert (after.content_version, after.lease_epoch) == (2, 1)


async def test_renewal_neither_reads_nor_guards_the_conversation(
    firestore: FirestoreSubject,
) -> None:
    job = await leased(firestore)
    firestore.advance(1)
    line = Line(firestore)
    line.before_commit(lambda: talk(firestore, number=2))
    renewed = await moved(firestore, Checkpoint(job.claim))
    names = firestore.store._rpc.names
    assert line.reads[0] == [names.job(job.job_id)]
    assert [write.update.name for write in line.commits[0]] == [names.job(job.job_id)]
    assert await row(firestore, job.job_id) == renewed


async def test_owner_that_was_overtaken_before_its_commit_is_refused(
    firestore: FirestoreSubject,
) -> None:
    job = await leased(firestore)
    firestore.advance(POLICY.lease)
    line = Line(firestore)
    line.before_commit(lambda: firestore.outbox.apply(claim_of(job, "claim-2")))
    answer = await firestore.outbox.apply(Complete(job.claim))
    assert isinstance(answer, Refused)
    assert answer.code is RefusalCode.OWNERSHIP_LOST


async def test_admission_between_whose_looks_the_job_changed_opens_no_third_revision(
    firestore: FirestoreSubject,
) -> None:
    job = await leased(firestore)
    await talk(firestore, number=2)
    await decided(firestore, admit())
    await firestore.restart()
    Line(firestore).before_read(2, lambda: _elsewhere(firestore, Complete(job.claim)))
    answer = await decided(firestore, admit())
    assert held(answer.job).job_id == job_id(UID, CONVERSATION, 2)
    assert await firestore.job_count() == 2


async def _elsewhere(firestore: FirestoreSubject, command: Command) -> None:
    """Apply a command as another process would."""
    other = FirestoreStore(firestore.project, POLICY)
    await other.outbox.apply(command)
    await other.close()


async def test_command_on_a_job_seen_first_is_decided_on_one_instant(
    firestore: FirestoreSubject,
) -> None:
    job = await admitted(firestore)
    await firestore.restart()
    Line(firestore).before_read(2, lambda: _elsewhere(firestore, claim_of(job, "claim-2")))
    answer = await firestore.outbox.apply(claim_of(job))
    assert isinstance(answer, Refused)
    assert answer.code is RefusalCode.LEASE_HELD


async def test_refusal_of_a_job_seen_first_is_decided_on_one_instant(
    firestore: FirestoreSubject,
) -> None:
    job = await leased(firestore)
    last = POLICY.max_attempts - 1
    dead = await moved(firestore, Fail(job.claim, FailureCode.PROVIDER_ERROR, task_retry=last))
    await firestore.restart()
    replay = Replay(dead.job_id, 1, "request-1")
    Line(firestore).before_read(2, lambda: _elsewhere(firestore, replay))
    again = await decided(firestore, replay)
    assert (held(again.job).status, again.changed) == (Status.QUEUED, False)


@pytest.mark.parametrize("fault", [StoreBusyError, StoreUnavailableError])
async def test_fault_that_stays_is_raised_after_bounded_attempts(
    firestore: FirestoreSubject, monkeypatch: pytest.MonkeyPatch, fault: type[StoreError]
) -> None:
    monkeypatch.setattr(attempts, "FIRST_WAIT", 1e-6)
    monkeypatch.setattr(attempts, "LONGEST_WAIT", 1e-6)
    monkeypatch.setattr(attempts, "ATTEMPTS", 5)
    await talk(firestore)
    line = Line(firestore)

    async def refuse() -> None:
        raise fault

    for _ in range(5):
        line.before_commit(refuse)
    with pytest.raises(fault):
        await firestore.outbox.apply(admit())
    assert len(line.commits) == 5
    assert await firestore.job_count() == 0


async def test_no_attempt_starts_after_the_total_time(
    firestore: FirestoreSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "TOTAL", 0.0)
    await talk(firestore)
    line = Line(firestore)
    line.lose("request")
    with pytest.raises(StoreUnavailableError):
        await firestore.outbox.apply(admit())
    assert len(line.commits) == 1


async def test_server_that_is_not_there_is_told_as_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", "127.0.0.1:1")
    monkeypatch.setattr(attempts, "ATTEMPTS", 2)
    store = FirestoreStore("nowhere", POLICY)
    with pytest.raises(StoreUnavailableError):
        await store.outbox.due(10)
    await store.close()


class _Silent(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Takes every call and answers none."""

    def service(self, handler_call_details: Any) -> Any:
        async def never(request: bytes, context: Any) -> AsyncIterator[bytes]:
            await asyncio.Event().wait()
            yield b""

        return grpc.unary_stream_rpc_method_handler(never)


async def test_server_that_never_answers_is_left_after_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = grpc.aio.server(handlers=[_Silent()])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", f"127.0.0.1:{port}")
    monkeypatch.setattr(attempts, "ATTEMPTS", 1)
    for name in ("READ_DEADLINE", "QUERY_DEADLINE", "COMMIT_DEADLINE"):
        monkeypatch.setattr(rpc, name, 0.1)
    store = FirestoreStore("nowhere", POLICY)
    for call in (
        store.outbox.get("job"),
        store.outbox.due(1),
        store.outbox.counts(),
        store._rpc.commit([]),
    ):
        with pytest.raises(StoreUnavailableError):
            await call
    await store.close()
    await server.stop(0)


async def test_row_of_a_wrong_guess_is_not_read(firestore: FirestoreSubject) -> None:
    first = await leased(firestore)
    await talk(firestore, number=2)
    await decided(firestore, admit())
    await _elsewhere(firestore, Complete(first.claim))
    await firestore.set_job(first.job_id, {"schema_version": 99})
    answer = await decided(firestore, admit())
    assert held(answer.job).finalization_revision == 2


async def test_instant_beyond_time_is_refused_before_anything_is_read(
    firestore: FirestoreSubject,
) -> None:
    line = Line(firestore)
    with pytest.raises(StoreError):
        await firestore.outbox.set_aside("none", Instant(2**63), 1)
    assert (line.reads, line.commits) == ([], [])


async def test_claim_of_a_job_that_was_seen_costs_one_read_and_one_commit(
    firestore: FirestoreSubject,
) -> None:
    job = await admitted(firestore)
    line = Line(firestore)
    assert (await moved(firestore, claim_of(job))).status is Status.LEASED
    assert (len(line.reads), len(line.commits)) == (1, 1)
