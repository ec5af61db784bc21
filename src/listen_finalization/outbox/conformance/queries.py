"""The reads: due, leases, list, counts and oldest."""

from __future__ import annotations

from listen_finalization.domain.codes import Actor, FailureCode, Status
from listen_finalization.domain.commands import Checkpoint, Complete, Fail
from listen_finalization.domain.job import Job
from listen_finalization.outbox.conformance.subject import (
    POLICY,
    Subject,
    admitted,
    claim_of,
    held,
    leased,
    moved,
    row,
)
from listen_finalization.ports import DueRow


def _as_due(job: Job) -> DueRow:
    return DueRow(
        job.job_id,
        job.dispatch_generation,
        job.status,
        job.requires_byok,
        job.handovers,
        held(job.reconcile_after_at),
        job.claim_id,
    )


async def _series(subject: Subject, count: int) -> list[Job]:
    jobs = []
    for number in range(count):
        subject.advance(1_000)
        jobs.append(await admitted(subject, f"conversation-{number}"))
    return jobs


async def due_rows_come_oldest_first_and_bounded(subject: Subject) -> None:
    jobs = await _series(subject, 5)
    early = await subject.outbox.due(10)
    assert (early.rows, early.next_due) == ((), jobs[0].reconcile_after_at)
    subject.advance(POLICY.handover)
    page = await subject.outbox.due(3)
    assert page.rows == tuple(map(_as_due, jobs[:3]))
    behind = await subject.outbox.due(3, after=page.rows[-1])
    assert behind.rows == tuple(map(_as_due, jobs[3:]))
    everything = await subject.outbox.due(10)
    assert everything.rows == tuple(map(_as_due, jobs))
    assert everything.next_due is None
    assert everything.now >= jobs[-1].updated_at + POLICY.handover - 1_000


async def full_page_tells_when_the_next_row_will_be_due(subject: Subject) -> None:
    first = await admitted(subject, "first")
    subject.advance(POLICY.handover // 2)
    second = await admitted(subject, "second")
    subject.advance(POLICY.handover // 2)
    page = await subject.outbox.due(1)
    assert page.rows == (_as_due(first),)
    assert page.next_due == second.reconcile_after_at


async def due_rows_of_one_instant_are_each_paged_once(subject: Subject) -> None:
    jobs = [await admitted(subject, f"conversation-{number}") for number in range(5)]
    subject.advance(POLICY.handover)
    found, after = [], None
    while page := (await subject.outbox.due(2, after=after)).rows:
        found += [due.job_id for due in page]
        after = page[-1]
    assert sorted(found) == sorted(job.job_id for job in jobs)


async def due_holds_every_open_row_but_blocked_ones(subject: Subject) -> None:
    queued = await admitted(subject, "queued")
    running = await leased(subject, "running")
    keyed = await admitted(subject, "keyed", holds_keys=True)
    await admitted(subject, "blocked", byok=True)
    ended = await leased(subject, "ended", "claim-9")
    await moved(subject, Complete(ended.claim))
    dead = await leased(subject, "dead", "claim-8")
    final = Fail(dead.claim, FailureCode.PROVIDER_ERROR, task_retry=POLICY.max_attempts - 1)
    await moved(subject, final)
    subject.advance(POLICY.session_limit)
    page = await subject.outbox.due(10)
    assert page.rows == tuple(map(_as_due, (running, queued, keyed)))


async def leases_come_by_their_end_and_bounded(subject: Subject) -> None:
    jobs = [await leased(subject, f"c-{number}", f"claim-{number}") for number in range(3)]
    subject.advance(1_000_000)
    renewed = await moved(subject, Checkpoint(jobs[0].claim))
    order = (*jobs[1:], renewed)
    found = await subject.outbox.leases(10)
    assert set(found) == set(map(_as_due, order))
    assert [lease.due for lease in found] == sorted(lease.due for lease in found)
    assert found[-1].job_id == renewed.job_id
    assert len(await subject.outbox.leases(2)) == 2


async def _listed(subject: Subject, limit: int, status: Status | None = None) -> list[str]:
    page = await subject.outbox.list(status=status, limit=limit)
    found = [job.job_id for job in page.jobs]
    while page.cursor is not None:
        page = await subject.outbox.list(status=status, limit=limit, cursor=page.cursor)
        found += [job.job_id for job in page.jobs]
    return found


async def list_is_newest_first_in_pages_of_any_size(subject: Subject) -> None:
    jobs = await _series(subject, 7)
    await moved(subject, claim_of(jobs[2]))
    newest_first = [job.job_id for job in reversed(jobs)]
    for limit in (1, 2, 3, 7, 500):
        assert await _listed(subject, limit) == newest_first
    assert await _listed(subject, 2, Status.LEASED) == [jobs[2].job_id]
    assert await _listed(subject, 2, Status.COMPLETED) == []


async def list_holds_whole_rows(subject: Subject) -> None:
    job = await leased(subject)
    page = await subject.outbox.list()
    assert (page.jobs, page.cursor) == ((job,), None)


async def list_is_stable_under_inserts_and_transitions(subject: Subject) -> None:
    jobs = await _series(subject, 6)
    first = await subject.outbox.list(limit=3)
    subject.advance(1_000)
    await admitted(subject, "newcomer")
    await moved(subject, claim_of(jobs[1]))
    second = await subject.outbox.list(limit=3, cursor=first.cursor)
    seen = [job.job_id for job in (*first.jobs, *second.jobs)]
    assert seen == [job.job_id for job in reversed(jobs)]
    assert second.jobs[1] == await row(subject, jobs[1].job_id)
    assert second.cursor is None


async def rows_made_at_one_instant_are_each_listed_once(subject: Subject) -> None:
    jobs = [await admitted(subject, f"conversation-{number}") for number in range(9)]
    found = await _listed(subject, 2)
    assert sorted(found) == sorted(job.job_id for job in jobs)


async def counts_cover_every_status_but_completed(subject: Subject) -> None:
    empty = dict.fromkeys(set(Status) - {Status.COMPLETED}, 0)
    assert await subject.outbox.counts() == empty
    await admitted(subject, "queued")
    await admitted(subject, "blocked", byok=True)
    ended = await leased(subject, "ended")
    await moved(subject, Complete(ended.claim))
    running = await leased(subject, "running", "claim-2")
    assert running.history[-1].actor is Actor.WORKER
    one = {Status.QUEUED: 1, Status.LEASED: 1, Status.BLOCKED_BYOK: 1}
    assert await subject.outbox.counts() == empty | one


async def oldest_names_the_open_statuses_that_have_rows(subject: Subject) -> None:
    assert await subject.outbox.oldest() == {}
    first, _, third = await _series(subject, 3)
    blocked = await admitted(subject, "blocked", byok=True)
    expected = {Status.QUEUED: first.created_at, Status.BLOCKED_BYOK: blocked.created_at}
    assert await subject.outbox.oldest() == expected
    await moved(subject, claim_of(third))
    expected[Status.LEASED] = third.created_at
    assert await subject.outbox.oldest() == expected
