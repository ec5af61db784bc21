"""Admission: contract 6, rule by rule."""

from __future__ import annotations

import asyncio

from listen_finalization.domain.codes import Actor, ConversationStatus, RefusalCode, Status, Verb
from listen_finalization.domain.commands import Command, Complete
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.identity import job_id
from listen_finalization.domain.job import HistoryEntry, Job
from listen_finalization.outbox.conformance.subject import (
    CONVERSATION,
    POLICY,
    UID,
    Subject,
    admit,
    admitted,
    claim_of,
    conversation,
    decided,
    held,
    later,
    leased,
    moved,
    refused,
    repeats,
    row,
    segment,
    talk,
)


async def fresh_admission_writes_job_and_conversation_together(subject: Subject) -> None:
    await talk(subject)
    answer = await decided(subject, admit(force_process=True))
    job = held(answer.job)
    now = job.created_at
    expected = Job(
        job_id=job_id(UID, CONVERSATION, 1),
        uid=UID,
        conversation_id=CONVERSATION,
        finalization_revision=1,
        status=Status.QUEUED,
        requires_byok=False,
        force_process=True,
        created_at=now,
        updated_at=now,
        dispatched_at=now,
        handovers=1,
        reconcile_after_at=later(now, POLICY.handover),
        history=(HistoryEntry(now, Verb.ADMIT, None, Status.QUEUED, 1, 0, Actor.CUSTOMER),),
    )
    assert job == expected
    assert await row(subject, job.job_id) == expected
    assert await conversation(subject) == Conversation(
        UID,
        CONVERSATION,
        ConversationStatus.PROCESSING,
        content_version=1,
        has_content=True,
        job_id=job.job_id,
        revision=1,
        wanted_version=1,
        admitted_at=now,
    )


async def repeated_admission_answers_the_same_job_and_keeps_its_decisions(
    subject: Subject,
) -> None:
    job = await admitted(subject, context={"title": "Standup"})
    before = await conversation(subject)
    await repeats(subject, admit(), job)
    again = await decided(
        subject, admit(force_process=True, holds_keys=True, context={"title": "Other"})
    )
    assert (again.job, again.changed) == (job, False)
    assert await row(subject, job.job_id) == job
    assert await conversation(subject) == before
    content = held(await subject.conversations.content(UID, CONVERSATION))
    assert content.calendar_context == {"title": "Standup"}


async def contenders_get_one_job_and_one_answer(subject: Subject) -> None:
    await talk(subject)
    answers = await asyncio.gather(*(subject.outbox.apply(admit()) for _ in range(64)))
    assert {answer.job for answer in answers} == {await row(subject, job_id(UID, CONVERSATION, 1))}
    assert sum(isinstance(a, Decision) and a.changed for a in answers) == 1
    assert await subject.job_count() == 1


async def absent_foreign_and_deleted_are_the_same_refusal(subject: Subject) -> None:
    missing = RefusalCode.CONVERSATION_NOT_FOUND
    await refused(subject, admit("nowhere"), missing)
    await talk(subject)
    await refused(subject, admit(uid="stranger"), missing)
    assert await subject.conversations.delete(UID, CONVERSATION)
    await refused(subject, admit(), missing)
    assert await subject.job_count() == 0


async def content_is_a_segment_with_words_or_a_photo(subject: Subject) -> None:
    append = subject.conversations.append
    await append(UID, CONVERSATION, [])
    await refused(subject, admit(), RefusalCode.CONVERSATION_EMPTY)
    await append(UID, CONVERSATION, [segment(text=" \u3000\n")])
    await refused(subject, admit(), RefusalCode.CONVERSATION_EMPTY)
    await append(UID, "photographed", [], photos=1)
    await moved(subject, admit("photographed"))


async def emptied_segments_are_no_content(subject: Subject) -> None:
    await talk(subject)
    await talk(subject, number=2)
    for number in (1, 2):
        await subject.conversations.append(UID, CONVERSATION, [segment(number, " ")])
    await refused(subject, admit(), RefusalCode.CONVERSATION_EMPTY)


async def discarded_and_foreign_statuses_are_refused(subject: Subject) -> None:
    await talk(subject)
    await subject.set_conversation(UID, CONVERSATION, {"discarded": True})
    await refused(subject, admit(), RefusalCode.CONVERSATION_DISCARDED)
    await subject.set_conversation(UID, CONVERSATION, {"discarded": False})
    for status in ("processing", "completed", "failed", "merging"):
        await subject.set_conversation(UID, CONVERSATION, {"status": status})
        await refused(subject, admit(), RefusalCode.CONVERSATION_NOT_OURS)
    assert await subject.job_count() == 0


async def document_without_room_is_refused(subject: Subject) -> None:
    await talk(subject)
    large = {"extra": {"note": "\u00e9" * 524_040}}
    await subject.set_conversation(UID, CONVERSATION, large)
    await refused(subject, admit(), RefusalCode.CONVERSATION_FULL)


async def adoption_takes_a_processing_conversation_that_nobody_owns(subject: Subject) -> None:
    await talk(subject)
    await subject.set_conversation(UID, CONVERSATION, {"status": "processing"})
    job = await moved(subject, admit(adopt=True, actor=Actor.SWEEP))
    assert job.finalization_revision == 1
    assert (await conversation(subject)).job_id == job.job_id


async def marked_conversation_waits_for_keys(subject: Subject) -> None:
    job = await admitted(subject, byok=True)
    assert (job.status, job.requires_byok) == (Status.BLOCKED_BYOK, True)
    assert (job.reconcile_after_at, job.handovers) == (None, 0)
    assert await row(subject, job.job_id) == job


async def keys_in_hand_queue_the_job_for_the_session_limit(subject: Subject) -> None:
    job = await admitted(subject, holds_keys=True)
    assert (job.status, job.requires_byok) == (Status.QUEUED, True)
    assert job.reconcile_after_at == job.created_at + POLICY.session_limit
    assert (await conversation(subject)).requires_byok


async def newer_content_of_an_unclaimed_job_is_read_by_its_run(subject: Subject) -> None:
    job = await admitted(subject)
    assert await talk(subject, number=2) == 2
    again = await decided(subject, admit())
    assert (again.job, again.changed) == (job, False)
    claimed = await moved(subject, claim_of(job))
    assert claimed.content_version == 2


async def newer_content_of_a_running_job_becomes_the_next_revision(subject: Subject) -> None:
    job = await leased(subject)
    await talk(subject, number=2)
    noted = await decided(subject, admit())
    assert (noted.job, noted.changed) == (job, False)
    assert (await conversation(subject)).wanted_version == 2
    done = await moved(subject, Complete(job.claim))
    assert done.status is Status.COMPLETED
    successor = await row(subject, job_id(UID, CONVERSATION, 2))
    assert (successor.status, successor.finalization_revision) == (Status.QUEUED, 2)
    after = await conversation(subject)
    assert (after.status, after.job_id) == (ConversationStatus.PROCESSING, successor.job_id)
    assert await subject.job_count() == 2


async def newer_content_of_a_completed_conversation_is_a_revision_at_once(
    subject: Subject,
) -> None:
    job = await leased(subject)
    done = await moved(subject, Complete(job.claim))
    assert (await decided(subject, admit())).job == done
    await talk(subject, number=2)
    second = await moved(subject, admit())
    assert second.finalization_revision == 2
    assert await row(subject, job.job_id) == done


async def opposing_wishes_leave_one_open_job(subject: Subject) -> None:
    job = await leased(subject)
    await talk(subject, number=2)
    commands: list[Command] = [admit(), Complete(job.claim), *(admit() for _ in range(14))]
    await asyncio.gather(*(subject.outbox.apply(command) for command in commands))
    await subject.outbox.apply(admit())
    after = await conversation(subject)
    assert (after.status, after.revision) == (ConversationStatus.PROCESSING, 2)
    assert (await row(subject, held(after.job_id))).status is Status.QUEUED
    assert await subject.job_count() == 2
