"""Documents of the application's own, damaged, newer and full ones, on the production store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from google.cloud.firestore_v1 import GeoPoint

from listen_finalization.domain.codes import (
    ConversationStatus,
    EffectCode,
    EffectState,
    FailureCode,
    RefusalCode,
    Status,
    Step,
)
from listen_finalization.domain.commands import Checkpoint, Complete, Fail, StepResult
from listen_finalization.domain.content import Content, Memory, Segment
from listen_finalization.domain.decision import Refused
from listen_finalization.domain.job import Effect, Job
from listen_finalization.errors import RowUnreadableError, ValueRefusedError
from listen_finalization.outbox.conformance.subject import (
    CONVERSATION,
    POLICY,
    UID,
    admit,
    admitted,
    claim_of,
    conversation,
    held,
    leased,
    moved,
    record,
    refused,
    row,
    segment,
    talk,
)
from listen_finalization.outbox.firestore.size import MAX_DOCUMENT, SPARE, document_size

from .firestore_subject import JOBS, FirestoreSubject

pytestmark = pytest.mark.xdist_group("firestore")

THEIRS: Mapping[str, Any] = {
    "status": "in_progress",
    "folder": ["work", {"x": None}],
    "geolocation": GeoPoint(1.0, 2.0),
    "transcript_segments": [
        {"text": "We ship.", "speaker": "SPEAKER_00", "is_user": True, "start": 1, "end": 2.5}
    ],
}
ENRICHED = (Effect(Step.ENRICH, EffectState.DONE, code=EffectCode.STORED),)


async def test_conversation_of_the_applications_own_is_finalized(
    firestore: FirestoreSubject,
) -> None:
    place = firestore.place(UID, CONVERSATION)
    await place.set(dict(THEIRS))
    job = await moved(firestore, claim_of(await moved(firestore, admit())))
    assert job.content_version == 1
    said = Segment("0", "SPEAKER_00", 1.0, 2.5, "We ship.")
    content = await firestore.conversations.content(UID, CONVERSATION)
    assert content == Content((said,), 1)
    await moved(firestore, Complete(job.claim))
    after = await firestore.conversation_fields(UID, CONVERSATION)
    assert {name: after[name] for name in THEIRS} == {**THEIRS, "status": "completed"}


@pytest.mark.parametrize(
    ("fields", "admitted"),
    [
        ({"photos": [{"id": "p"}]}, True),
        ({"transcript_segments": [{"text": " \u3000"}], "photos": []}, False),
        ({}, False),
    ],
)
async def test_content_of_the_applications_own_document_is_looked_for(
    firestore: FirestoreSubject, fields: Mapping[str, Any], admitted: bool
) -> None:
    await firestore.place(UID, CONVERSATION).set({"status": "in_progress", **fields})
    if admitted:
        await moved(firestore, admit())
    else:
        await refused(firestore, admit(), RefusalCode.CONVERSATION_EMPTY)


async def test_append_keeps_the_fields_of_a_segment_that_are_not_ours(
    firestore: FirestoreSubject,
) -> None:
    await firestore.place(UID, CONVERSATION).set(dict(THEIRS))
    corrected = Segment("0", "SPEAKER_00", 1.0, 2.5, "We shipped.")
    append = firestore.conversations.append
    assert await append(UID, CONVERSATION, [corrected, segment(2)]) == 2
    [first, second] = (await firestore.conversation_fields(UID, CONVERSATION))[
        "transcript_segments"
    ]
    assert (first["is_user"], first["text"]) == (True, "We shipped.")
    assert second["id"] == "segment-2"


async def test_fields_of_a_newer_version_survive_every_transition(
    firestore: FirestoreSubject,
) -> None:
    job = await admitted(firestore)
    await firestore.set_job(job.job_id, {"of_tomorrow": {"a": [1]}})
    claimed = await moved(firestore, claim_of(job))
    await moved(firestore, Complete(claimed.claim))
    stored = (await firestore.client.document(JOBS, job.job_id).get()).to_dict()
    assert held(stored)["of_tomorrow"] == {"a": [1]}
    absent = {"reconcile_after_at", "lease_expires_at", "leased_at", "failure_code"}
    assert not absent & set(held(stored))


@pytest.mark.parametrize(
    "fields",
    [
        {"lease_epoch": "one"},
        {"dispatch_generation": 1.5},
        {"requires_byok": 1},
        {"created_at": "yesterday"},
        {"status": None},
        {"uid": "a/b"},
        {"effects": [1]},
        {"history": [{"verb": "admit"}]},
        {"history": {"at": 1}},
    ],
)
async def test_field_that_cannot_be_meant_makes_the_row_unreadable(
    firestore: FirestoreSubject, fields: Mapping[str, Any]
) -> None:
    job = await admitted(firestore)
    await firestore.set_job(job.job_id, fields)
    with pytest.raises(RowUnreadableError):
        await firestore.outbox.get(job.job_id)
    assert await firestore.outbox.apply(claim_of(job)) == Refused(RefusalCode.SCHEMA_NEWER)


async def test_due_time_that_is_no_time_stands_in_nobodys_way(
    firestore: FirestoreSubject,
) -> None:
    for number, junk in enumerate((-1.5, "soon", True)):
        damaged = await admitted(firestore, f"damaged-{number}")
        await firestore.set_job(damaged.job_id, {"reconcile_after_at": junk})
        assert not await firestore.outbox.set_aside(damaged.job_id, damaged.created_at, 1)
    healthy = await admitted(firestore, "healthy")
    firestore.advance(POLICY.handover)
    page = await firestore.outbox.due(1)
    assert [due.job_id for due in page.rows] == [healthy.job_id]


async def test_conversation_field_of_another_type_refuses_the_admission(
    firestore: FirestoreSubject,
) -> None:
    await talk(firestore)
    await firestore.set_conversation(UID, CONVERSATION, {"content_version": "one"})
    assert await firestore.outbox.apply(admit()) == Refused(RefusalCode.SCHEMA_NEWER)


async def _filled(firestore: FirestoreSubject, room: int) -> None:
    """Let the application fill its document until `room` bytes are left."""
    await firestore.set_conversation(UID, CONVERSATION, {"filler": ""})
    taken = await _size(firestore)
    filler = "x" * (MAX_DOCUMENT - taken - room)
    await firestore.set_conversation(UID, CONVERSATION, {"filler": filler})
    assert await _size(firestore) == MAX_DOCUMENT - room


async def _size(firestore: FirestoreSubject) -> int:
    rpc = firestore.store._rpc
    name = rpc.names.conversation(UID, CONVERSATION)
    document = held((await rpc.read((name,))).of(name))
    return document_size(document.fields, document.name)


async def _enriched(firestore: FirestoreSubject, structured: Mapping[str, Any]) -> Job:
    job = await moved(firestore, claim_of(await moved(firestore, admit())))
    results = (StepResult(Step.ENRICH, json.dumps(structured)),)
    return await moved(firestore, Checkpoint(job.claim, effects=ENRICHED, results=results))


STRUCTURED: Mapping[str, Any] = {
    "title": "t" * 100,
    "overview": "o" * 2_000,
    "category": "work",
    "action_items": [{"text": "a" * 400}] * 40,
    "events": [{"title": "e" * 400}] * 40,
}


@pytest.mark.parametrize(
    ("room", "kept"),
    [
        (SPARE + 60_000, {"events": 40, "action_items": 40, "overview": 2_000, "title": 100}),
        (SPARE + 20_000, {"events": 2, "action_items": 40, "overview": 2_000, "title": 100}),
        (SPARE + 10_000, {"events": 0, "action_items": 10, "overview": 2_000, "title": 100}),
        (SPARE + 1_000, {"events": 0, "action_items": 0, "overview": 500, "title": 100}),
        (200, {"events": 0, "action_items": 0, "overview": 0, "title": 0}),
    ],
)
async def test_record_is_shortened_in_order_to_what_the_document_has_room_for(
    firestore: FirestoreSubject, room: int, kept: Mapping[str, int]
) -> None:
    await talk(firestore)
    job = await _enriched(firestore, STRUCTURED)
    await _filled(firestore, room)
    done = await moved(firestore, Complete(job.claim))
    structured = held((await record(firestore)).structured)
    assert {name: len(structured[name]) for name in kept} == kept
    assert structured["category"] == "work"
    whole = structured == STRUCTURED
    code = EffectCode.STORED if whole else EffectCode.RESULT_SHORTENED
    assert [effect.code for effect in done.effects] == [code]
    assert await row(firestore, done.job_id) == done
    assert whole is (room == SPARE + 60_000)


async def test_full_document_is_completed_without_a_record(firestore: FirestoreSubject) -> None:
    await talk(firestore)
    job = await _enriched(firestore, STRUCTURED)
    await _filled(firestore, 0)
    done = await moved(firestore, Complete(job.claim))
    assert [effect.code for effect in done.effects] == [EffectCode.RESULT_SHORTENED]
    after = await record(firestore)
    assert (after.conversation.status, after.structured) == (ConversationStatus.COMPLETED, None)


async def test_full_document_of_the_applications_own_is_dead_lettered(
    firestore: FirestoreSubject,
) -> None:
    await firestore.place(UID, CONVERSATION).set(dict(THEIRS))
    job = await moved(firestore, claim_of(await moved(firestore, admit())))
    await _filled(firestore, 0)
    last = POLICY.max_attempts - 1
    dead = await moved(firestore, Fail(job.claim, FailureCode.PROVIDER_ERROR, task_retry=last))
    assert dead.status is Status.DEAD_LETTER
    after = await conversation(firestore)
    assert (after.status, after.discarded) == (ConversationStatus.FAILED, True)


async def test_lost_worker_of_a_stored_record_publishes_it_by_the_measured_room(
    firestore: FirestoreSubject,
) -> None:
    await talk(firestore)
    job = await _enriched(firestore, STRUCTURED)
    memories = (Effect(Step.MEMORIES, EffectState.DONE),)
    await moved(firestore, Checkpoint(job.claim, effects=memories))
    await _filled(firestore, 200)
    last = POLICY.max_attempts - 1
    done = await moved(firestore, Fail(job.claim, FailureCode.PROVIDER_ERROR, task_retry=last))
    assert done.status is Status.COMPLETED
    assert held((await record(firestore)).structured)["title"] == ""


async def test_admission_into_the_last_bytes_succeeds_and_beyond_them_is_refused(
    firestore: FirestoreSubject,
) -> None:
    await talk(firestore)
    before = await _size(firestore)
    await moved(firestore, admit())
    grown = await _size(firestore) - before
    await firestore.remove_conversation(UID, CONVERSATION)
    await talk(firestore)
    await _filled(firestore, grown - 1)
    await refused(firestore, admit(), RefusalCode.CONVERSATION_FULL)
    await _filled(firestore, grown)
    await moved(firestore, admit())
    assert await _size(firestore) == MAX_DOCUMENT


async def test_append_that_would_not_leave_the_spare_room_changes_nothing(
    firestore: FirestoreSubject,
) -> None:
    append = firestore.conversations.append
    await talk(firestore)
    before = await firestore.conversation_fields(UID, CONVERSATION)
    with pytest.raises(ValueRefusedError):
        await append(UID, CONVERSATION, [segment(2, "x" * (MAX_DOCUMENT - SPARE - 400))])
    with pytest.raises(ValueRefusedError):
        await append(UID, "new", [segment(2, "x" * (MAX_DOCUMENT - SPARE))])
    assert await firestore.conversation_fields(UID, CONVERSATION) == before
    assert await firestore.conversations.find(UID, "new") is None
    await append(UID, CONVERSATION, [segment(2, "x" * (MAX_DOCUMENT - SPARE - 600))])


@pytest.mark.parametrize("payload", ["[1]", "no JSON", '{"n":1e999}', '{"n":[[1]]}', '{"":1}'])
async def test_record_that_could_not_be_published_is_refused_when_it_is_stored(
    firestore: FirestoreSubject, payload: str
) -> None:
    job = await leased(firestore)
    results = (StepResult(Step.ENRICH, payload),)
    with pytest.raises(ValueRefusedError):
        await firestore.outbox.apply(Checkpoint(job.claim, effects=ENRICHED, results=results))
    assert await row(firestore, job.job_id) == job


async def test_memory_of_the_applications_own_is_not_told_as_ours(
    firestore: FirestoreSubject,
) -> None:
    job = await leased(firestore)
    theirs = {"conversation_id": CONVERSATION, "content": "theirs"}
    await firestore.client.collection("users", UID, "memories").add(theirs)
    memory = Memory("ours", ("segment-1",))
    await moved(firestore, Checkpoint(job.claim, effects=ENRICHED, memories=(memory,)))
    assert (await record(firestore)).memories == (memory,)
