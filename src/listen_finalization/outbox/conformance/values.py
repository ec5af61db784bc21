"""Values that no store can hold: one clear fault, and nothing of the operation is written."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace

from listen_finalization.domain.codes import EffectState, Step
from listen_finalization.domain.commands import Checkpoint, StepResult
from listen_finalization.domain.content import Memory
from listen_finalization.domain.job import Effect, Instant
from listen_finalization.errors import ValueRefusedError
from listen_finalization.outbox.conformance.subject import (
    CONVERSATION,
    UID,
    Subject,
    admit,
    conversation,
    held,
    leased,
    record,
    row,
    segment,
    talk,
)

_LONE = "half a pair \ud83d"


async def _refused(attempt: Awaitable[object]) -> None:
    try:
        await attempt
    except ValueRefusedError:
        return
    raise AssertionError


async def lone_surrogates_in_segments_are_refused_whole(subject: Subject) -> None:
    append = subject.conversations.append
    await _refused(append(UID, CONVERSATION, [segment(1), segment(2, _LONE)]))
    await _refused(append(_LONE, CONVERSATION, [segment(1)]))
    assert await subject.conversations.find(UID, CONVERSATION) is None


async def times_that_are_no_numbers_are_refused_whole(subject: Subject) -> None:
    append = subject.conversations.append
    for time in (float("nan"), float("inf"), float("-inf")):
        await _refused(append(UID, CONVERSATION, [segment(1), segment(2, start=time)]))
        await _refused(append(UID, CONVERSATION, [replace(segment(2), end=time)]))
    assert await subject.conversations.find(UID, CONVERSATION) is None


async def integers_beyond_64_bits_are_refused(subject: Subject) -> None:
    await _refused(subject.conversations.append(UID, CONVERSATION, [], photos=2**63))
    await _refused(subject.conversations.append(UID, CONVERSATION, [], photos=-1))
    await _refused(subject.outbox.set_aside("none", Instant(2**63), 1))
    assert await subject.conversations.find(UID, CONVERSATION) is None


async def surrogates_in_a_checkpoint_leave_no_part_of_it(subject: Subject) -> None:
    job = await leased(subject)
    done = (Effect(Step.ENRICH, EffectState.DONE),)
    good = (StepResult(Step.ENRICH, "{}"),)
    bad = Checkpoint(job.claim, effects=done, results=good, memories=(Memory(_LONE),))
    await _refused(subject.outbox.apply(bad))
    await _refused(subject.outbox.apply(replace(bad, results=(StepResult(Step.ENRICH, _LONE),))))
    assert await row(subject, job.job_id) == job
    assert await subject.conversations.results(job.job_id) == {}
    assert (await record(subject)).memories == ()


async def unstorable_context_admits_nothing(subject: Subject) -> None:
    await talk(subject)
    before = await conversation(subject)
    for value in (_LONE, float("nan"), object()):
        await _refused(subject.outbox.apply(admit(context={"title": value})))
    assert await subject.job_count() == 0
    assert await conversation(subject) == before


async def unstorable_records_are_refused(subject: Subject) -> None:
    for value in (_LONE, float("inf"), {1, 2}):
        await _refused(subject.records.put_if("flag", "k", {"v": value}, version=0))
    assert await subject.records.get("flag", "k") is None


async def one_unstorable_value_does_not_touch_its_neighbours(subject: Subject) -> None:
    append = subject.conversations.append
    attempts = [
        append(UID, f"c-{number}", [segment(1, _LONE if number % 5 == 0 else "fine")])
        for number in range(40)
    ]
    answers = await asyncio.gather(*attempts, return_exceptions=True)
    for number, answer in enumerate(answers):
        assert isinstance(answer, ValueRefusedError) if number % 5 == 0 else answer == 1
        found = await subject.conversations.content(UID, f"c-{number}")
        assert (found is None) is (number % 5 == 0)


async def bounds_and_cursors_that_no_page_gave_out_are_refused(subject: Subject) -> None:
    outbox = subject.outbox
    for limit in (0, -1, 501):
        await _refused(outbox.list(limit=limit))
    for limit in (0, -1):
        await _refused(outbox.due(limit))
        await _refused(outbox.leases(limit))
        await _refused(subject.records.list("flag", limit=limit))
    for cursor in ("", "x", "-1.a", "9" * 30 + ".a", "\u0661.a", "1." + _LONE):
        await _refused(outbox.list(cursor=cursor))
    await _refused(outbox.get(_LONE))
    assert held((await outbox.list()).jobs) == ()
