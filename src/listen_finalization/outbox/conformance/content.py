"""Conversations: segments, versions, deletion, and the fields that are not ours."""

from __future__ import annotations

import asyncio

from listen_finalization.domain.commands import Complete
from listen_finalization.domain.content import Content, Segment
from listen_finalization.errors import ConversationClosedError
from listen_finalization.outbox.conformance.subject import (
    CONVERSATION,
    UID,
    Subject,
    admit,
    admitted,
    claim_of,
    conversation,
    held,
    leased,
    moved,
    record,
    segment,
    talk,
)


async def _content(subject: Subject) -> Content:
    return held(await subject.conversations.content(UID, CONVERSATION))


async def absent_conversation_has_neither_record_nor_content(subject: Subject) -> None:
    assert await subject.conversations.find(UID, CONVERSATION) is None
    assert await subject.conversations.content(UID, CONVERSATION) is None
    assert not await subject.conversations.delete(UID, CONVERSATION)
    assert await subject.conversations.results("none") == {}


async def a_conversation_and_the_job_that_it_names_are_read_together(subject: Subject) -> None:
    assert await subject.outbox.find(UID, CONVERSATION) is None
    await talk(subject)
    assert await subject.outbox.find(UID, CONVERSATION) == (await conversation(subject), None)
    job = await leased(subject)
    assert await subject.outbox.find(UID, CONVERSATION) == (await conversation(subject), job)
    assert await subject.outbox.find("stranger", CONVERSATION) is None
    await subject.conversations.delete(UID, CONVERSATION)
    deleted, named = held(await subject.outbox.find(UID, CONVERSATION))
    assert deleted.deleted and named == job


async def segments_are_read_back_whole_and_in_time_order(subject: Subject) -> None:
    late, early = segment(1, "later \u2603", start=9.5), segment(2, "earlier", start=0.25)
    append = subject.conversations.append
    assert await append(UID, CONVERSATION, [late, early], language="de", photos=2) == 1
    expected = Content((early, late), 1, "de", 2)
    assert await _content(subject) == expected
    await subject.restart()
    assert await _content(subject) == expected


async def segments_of_one_instant_keep_the_order_of_their_arrival(subject: Subject) -> None:
    for number in (5, 3, 9):
        await talk(subject, number=number)
    pair = [segment(7), segment(1)]
    await subject.conversations.append(UID, CONVERSATION, pair)
    await subject.conversations.append(UID, CONVERSATION, [segment(3, "corrected")])
    found = [s.id for s in (await _content(subject)).segments]
    assert found == [f"segment-{number}" for number in (5, 3, 9, 7, 1)]


async def equal_repeat_of_segments_raises_no_version(subject: Subject) -> None:
    append = subject.conversations.append
    both = [segment(1), segment(2)]
    assert await append(UID, CONVERSATION, both) == 1
    assert await append(UID, CONVERSATION, both) == 1
    assert await append(UID, CONVERSATION, [segment(2, "changed")]) == 2
    assert await append(UID, CONVERSATION, [], byok=True) == 2
    assert await append(UID, CONVERSATION, [], photos=1) == 3


async def concurrent_appends_lose_nothing(subject: Subject) -> None:
    versions = await asyncio.gather(*(talk(subject, number=n) for n in range(64)))
    assert sorted(versions) == list(range(1, 65))
    assert len((await _content(subject)).segments) == 64


async def byok_mark_stays(subject: Subject) -> None:
    await talk(subject, byok=True)
    await talk(subject, number=2)
    assert (await conversation(subject)).requires_byok


async def deleted_and_discarded_conversations_take_no_segments(subject: Subject) -> None:
    for fields in ({"discarded": True}, {"discarded": False, "deleted": True}):
        await talk(subject)
        await subject.set_conversation(UID, CONVERSATION, fields)
        try:
            await talk(subject, number=2)
        except ConversationClosedError:
            assert len((await _content(subject)).segments) == 1
        else:
            raise AssertionError(fields)
        await subject.set_conversation(UID, CONVERSATION, {"discarded": False})


async def deletion_is_told_and_can_be_repeated(subject: Subject) -> None:
    await talk(subject)
    assert await subject.conversations.delete(UID, CONVERSATION)
    assert not await subject.conversations.delete(UID, CONVERSATION)
    assert (await record(subject)).conversation.deleted


async def fields_of_the_application_survive_a_whole_life(subject: Subject) -> None:
    await talk(subject)
    theirs = {"extra": {"folder": "work", "starred": [1, {"x": None}]}}
    await subject.set_conversation(UID, CONVERSATION, theirs)
    job = await moved(subject, admit(context={"title": "Standup"}))
    job = await moved(subject, claim_of(job))
    await moved(subject, Complete(job.claim))
    fields = await subject.conversation_fields(UID, CONVERSATION)
    assert fields["extra"] == theirs["extra"]


async def status_of_the_applications_own_survives_a_refusal(subject: Subject) -> None:
    await talk(subject)
    await subject.set_conversation(UID, CONVERSATION, {"status": "merging"})
    await subject.outbox.apply(admit())
    assert (await subject.conversation_fields(UID, CONVERSATION))["status"] == "merging"


async def odd_but_legal_identifiers_live_side_by_side(subject: Subject) -> None:
    names = ["\u00e9", "e\u0301", "\U0001f600" * 32, "a" * 128, "%", "_", "A", "a", "' OR 1=1 --"]
    jobs = [await admitted(subject, name) for name in names]
    assert len({job.job_id for job in jobs}) == len(names)
    for name, job in zip(names, jobs, strict=True):
        assert (await conversation(subject, name)).job_id == job.job_id
        assert held(await subject.outbox.get(job.job_id)).conversation_id == name
    spoken = Segment("\U0001f600" * 32, "\u202eme", 0.0, 1.0, "nul \0 inside")
    await subject.conversations.append(UID, "a", [spoken])
    assert spoken in held(await subject.conversations.content(UID, "a")).segments


async def users_do_not_see_each_other(subject: Subject) -> None:
    await talk(subject)
    await talk(subject, uid="stranger", number=2)
    await leased(subject)
    assert [s.id for s in (await _content(subject)).segments] == ["segment-1"]
    other = held(await subject.conversations.find("stranger", CONVERSATION))
    assert other.conversation.job_id is None
