"""Records: small rows with a version, written by compare-and-set."""

from __future__ import annotations

import asyncio
from typing import Any

from listen_finalization.outbox.conformance.subject import Subject, held
from listen_finalization.ports import Row


async def record_is_created_once_replaced_by_version_and_deleted(subject: Subject) -> None:
    put = subject.records.put_if
    value: dict[str, Any] = {"reason": "\u2603", "at": 2**53, "list": [None, True, 1.5]}
    made = held(await put("flag", "pause", value, version=0))
    assert await put("flag", "pause", {}, version=0) is None
    assert await subject.records.get("flag", "pause") == Row("pause", value, made.version)
    after = held(await put("flag", "pause", {"n": 2}, version=made.version))
    assert await put("flag", "pause", {"n": 3}, version=made.version) is None
    await subject.restart()
    assert await subject.records.get("flag", "pause") == Row("pause", {"n": 2}, after.version)
    assert await subject.records.delete("flag", "pause")
    assert not await subject.records.delete("flag", "pause")
    assert await subject.records.get("flag", "pause") is None


async def absent_record_is_not_replaced(subject: Subject) -> None:
    assert await subject.records.put_if("flag", "pause", {}, version=7) is None
    assert await subject.records.get("flag", "pause") is None


async def of_two_writers_one_wins(subject: Subject) -> None:
    put = subject.records.put_if
    first = await asyncio.gather(*(put("stamp", "round", {"n": n}, version=0) for n in range(32)))
    winner = [row for row in first if row is not None]
    assert len(winner) == 1
    seen = winner[0].version
    second = await asyncio.gather(
        *(put("stamp", "round", {"n": n}, version=seen) for n in range(32))
    )
    [after] = [row for row in second if row is not None]
    assert await subject.records.get("stamp", "round") == after


async def version_of_a_deleted_record_never_fits_its_successor(subject: Subject) -> None:
    put = subject.records.put_if
    old = held(await put("flag", "pause", {"by": "a"}, version=0))
    await subject.records.delete("flag", "pause")
    subject.advance(1)
    await put("flag", "pause", {"by": "b"}, version=0)
    assert await put("flag", "pause", {"by": "late"}, version=old.version) is None
    assert held(await subject.records.get("flag", "pause")).value == {"by": "b"}


async def records_are_listed_by_kind_prefix_and_key(subject: Subject) -> None:
    keys = ["a", "a/1", "a/2", "a/\U0010ffff", "a/\U0010ffffz", "a0", "b", "\u00e9/1"]
    for key in reversed(keys):
        await subject.records.put_if("destination", key, {"key": key}, version=0)
    await subject.records.put_if("flag", "a/9", {}, version=0)

    async def listed(prefix: str = "", limit: int = 100) -> list[str]:
        found = await subject.records.list("destination", prefix=prefix, limit=limit)
        return [row.key for row in found]

    assert await listed() == sorted(keys)
    assert await listed("a/") == ["a/1", "a/2", "a/\U0010ffff", "a/\U0010ffffz"]
    assert await listed("a/", 2) == ["a/1", "a/2"]
    assert await listed("%") == []
    assert await listed("\u00e9") == ["\u00e9/1"]
