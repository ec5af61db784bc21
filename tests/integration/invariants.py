"""The invariants of contract 17, read from the SQLite file itself and from what came outside."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from listen_finalization.domain.effect_key import delivery_id, idempotency_key
from listen_finalization.domain.identity import job_id
from listen_finalization.testing.processor import Call, count

from .receivers import Received

JOBS = "conversation_finalization_jobs"
Rows = list[dict[str, Any]]
_OPEN = ("queued", "leased", "blocked_byok")


def rows_of(path: Path, table: str) -> Rows:
    """Read a table as any other program would."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]


class Marks:
    """Remembers the highest generation and epoch of each row between looks at the store."""

    def __init__(self) -> None:
        self._high: dict[str, tuple[int, int]] = {}

    def look(self, path: Path) -> None:
        self.see(rows_of(path, JOBS))

    def see(self, rows: Rows) -> None:
        for row in rows:
            present = (row["dispatch_generation"], row["lease_epoch"])
            before = self._high.get(row["job_id"], (0, 0))
            assert present[0] >= before[0] and present[1] >= before[1], row
            self._high[row["job_id"]] = present


def check(
    path: Path,
    *,
    max_attempts: int,
    calls: Sequence[Call] = (),
    received: Iterable[Received] = (),
    settled: bool = True,
) -> None:
    """Check every invariant that a file, calls and deliveries can show."""
    tables = Tables(
        jobs=rows_of(path, JOBS),
        conversations=rows_of(path, "conversations"),
        results=rows_of(path, "step_results"),
        memories=rows_of(path, "memories"),
    )
    check_tables(tables, max_attempts=max_attempts, calls=calls, settled=settled)
    deliveries_once(tables.jobs, list(received))


@dataclass(frozen=True)
class Tables:
    """What a store holds, in the columns of the embedded one."""

    jobs: Rows
    conversations: Rows
    results: Rows
    memories: Rows


def check_tables(
    tables: Tables, *, max_attempts: int, calls: Sequence[Call] = (), settled: bool = True
) -> None:
    """Check every invariant that rows and calls can show, whichever store they lie in."""
    jobs = tables.jobs
    one_row_per_revision(jobs)
    terminal_together(jobs, tables.conversations)
    rows_are_whole(jobs)
    found_when_due(jobs)
    results_go_at_settlement(jobs, tables.results)
    memories_once(tables.memories)
    runs_within_budget(jobs, calls, max_attempts)
    if settled:
        assert not [row for row in jobs if row["status"] in ("queued", "leased")]


def one_row_per_revision(jobs: Rows) -> None:
    """1. One row per (uid, conversation, revision); generation and epoch never fall."""
    places = [(r["uid"], r["conversation_id"], r["finalization_revision"]) for r in jobs]
    assert len(places) == len(set(places))
    for row, place in zip(jobs, places, strict=True):
        assert row["job_id"] == job_id(*place)
        history = json.loads(row["history"])
        assert 1 <= len(history) <= 32
        for column in (4, 5):
            marks = [entry[column] for entry in history]
            assert marks == sorted(marks), row["job_id"]
        assert history[-1][4] <= row["dispatch_generation"]


def terminal_together(jobs: Rows, conversations: Rows) -> None:
    """2. A conversation and its job end together, and every earlier revision is terminal."""
    by_id = {row["job_id"]: row for row in jobs}
    for held in conversations:
        named = by_id.get(held["finalization_job_id"])
        over = held["status"] in ("completed", "failed") or bool(held["discarded"])
        if named is not None and not held["deleted"]:
            assert (named["status"] not in _OPEN) is over, (named["job_id"], held["status"])
            assert held["finalization_revision"] == named["finalization_revision"]
        mine = [
            r
            for r in jobs
            if (r["uid"], r["conversation_id"]) == (held["uid"], held["conversation_id"])
        ]
        assert all(r["status"] not in _OPEN for r in mine if r is not named)
        if held["status"] == "processing" and not held["deleted"]:
            assert named is not None
        if named is not None and named["outcome"] == "success" and _has_record(named):
            assert held["structured"], named["job_id"]


def _has_record(row: dict[str, Any]) -> bool:
    codes = [code for step, _, _, code, *_ in json.loads(row["effects"]) if step == "enrich"]
    return codes in (["stored"], ["result_shortened"])


def rows_are_whole(jobs: Rows) -> None:
    """Fields that belong together stand together (contract 3)."""
    for row in jobs:
        leased = row["status"] == "leased"
        assert (row["lease_expires_at"] is not None) is leased
        assert (row["completed_at"] is not None) is (row["status"] == "completed")
        assert (row["outcome"] is not None) is (row["status"] in ("completed", "dead_letter"))
        effects = json.loads(row["effects"])
        assert len(effects) <= 34
        if row["status"] == "completed":
            assert all(state in ("done", "dropped") for _, state, *_ in effects)


def found_when_due(jobs: Rows) -> None:
    """4. Every open row but those that wait for keys has a due time."""
    for row in jobs:
        assert (row["reconcile_after_at"] is not None) is (row["status"] in ("queued", "leased"))


def results_go_at_settlement(jobs: Rows, results: Rows) -> None:
    """Step results lie beside open jobs alone."""
    still = {row["job_id"] for row in jobs if row["status"] in _OPEN}
    assert {row["job_id"] for row in results} <= still


def memories_once(memories: Rows) -> None:
    """3. A memory is written once, however often its step ran."""
    texts = [(row["uid"], row["conversation_id"], row["text"]) for row in memories]
    assert len(texts) == len(set(texts))


def runs_within_budget(jobs: Rows, calls: Sequence[Call], max_attempts: int) -> None:
    """7. Provider runs per revision and budget are at most max attempts and releases."""
    for row in jobs:
        claims = {call.claim for call in calls if call.job_id == row["job_id"]}
        allowed = max_attempts * (1 + row["replay_count"]) + row["releases"]
        assert len(claims) <= allowed, row["job_id"]
        assert not claims or max(claims) <= row["lease_epoch"]
        for step in ("enrich", "memories"):
            begun = [c for c in calls if c.job_id == row["job_id"] and c.step == step]
            assert count(begun) == len({c.claim for c in begun}), "a step ran twice in one claim"


def deliveries_once(jobs: Rows, received: list[Received]) -> None:
    """3. A delivery that came twice came with the same key, id and body."""
    known = {
        delivery_id(row["job_id"], name): (row["job_id"], name)
        for row in jobs
        for step, _, name, *_ in json.loads(row["effects"])
        if step == "fanout"
    }
    bodies: defaultdict[str, set[str]] = defaultdict(set)
    for one in received:
        assert one.delivery_id in known, "a delivery that no ledger names"
        job, name = known[one.delivery_id]
        assert one.key == idempotency_key(job, name)
        bodies[one.delivery_id].add(one.body)
    assert all(len(found) == 1 for found in bodies.values())


def delivered_all(path: Path, received: Iterable[Received]) -> None:
    """Every delivery that a row calls done was received."""
    seen = {one.delivery_id for one in received}
    for row in rows_of(path, JOBS):
        for step, state, name, *_ in json.loads(row["effects"]):
            if step == "fanout" and state == "done":
                assert delivery_id(row["job_id"], name) in seen
