"""The store's clock: one anchor for every process of a boot, never behind the newest row."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from listen_finalization.domain.commands import Checkpoint, ClaimJob
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import Instant
from listen_finalization.domain.policy import Policy
from listen_finalization.outbox import clock, database
from listen_finalization.outbox.engine import SqliteEngine

from .stores import START, admit, append

HOUR = 3_600_000_000


@dataclass
class Machine:
    """The clocks of the machine, set by hand; microseconds."""

    wall: int = START
    boot: int = 5_000_000
    boot_id: str = "boot-1"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    set_by_hand = Machine()
    monkeypatch.setattr(time, "time_ns", lambda: set_by_hand.wall * 1_000)
    monkeypatch.setattr(clock, "boot_micros", lambda: set_by_hand.boot)
    monkeypatch.setattr(database, "boot_micros", lambda: set_by_hand.boot)
    monkeypatch.setattr(database, "boot_id", lambda: set_by_hand.boot_id)
    yield set_by_hand


def _open(tmp_path: Path) -> SqliteEngine:
    return SqliteEngine(tmp_path / "store.db", Policy())


def test_first_open_anchors_the_wall_clock(machine: Machine, tmp_path: Path) -> None:
    store = _open(tmp_path)
    assert store.clock() == START
    machine.boot += 7
    assert store.clock() == START + 7


def test_step_of_the_wall_clock_moves_nothing(machine: Machine, tmp_path: Path) -> None:
    first = _open(tmp_path)
    for step in (HOUR, -2 * HOUR):
        machine.wall += step
        machine.boot += 10
        assert first.clock() == _open(tmp_path).clock() == START + machine.boot - 5_000_000


def test_process_with_a_wrong_wall_clock_shares_the_anchor(
    machine: Machine, tmp_path: Path
) -> None:
    _open(tmp_path).close()
    machine.wall = 0
    assert _open(tmp_path).clock() == START


def test_new_boot_anchors_again(machine: Machine, tmp_path: Path) -> None:
    _open(tmp_path).close()
    machine.boot_id, machine.boot, machine.wall = "boot-2", 100, START + HOUR
    assert _open(tmp_path).clock() == START + HOUR


def test_new_boot_is_never_behind_the_newest_row(machine: Machine, tmp_path: Path) -> None:
    store = _open(tmp_path)
    _, admitted = store.apply_batch([append("c"), admit("c")])
    machine.boot += HOUR
    [claimed] = store.apply_batch([ClaimJob(admitted.job.job_id, 1, "claim")])
    machine.boot += 1_000_000
    [renewed] = store.apply_batch([Checkpoint(claimed.job.claim)])
    assert isinstance(renewed, Decision)
    assert renewed.job is not None
    store.close()
    machine.boot_id, machine.boot, machine.wall = "boot-2", 100, START - HOUR
    assert _open(tmp_path).clock() == Instant(renewed.job.updated_at)


def test_suspended_store_keeps_its_clock(machine: Machine, tmp_path: Path) -> None:
    store = _open(tmp_path)
    store.suspend()
    machine.wall += HOUR
    store.apply_batch([append("c")])
    assert store.clock() == START


def test_machine_names_its_boot_and_counts_from_it() -> None:
    assert clock.boot_id() == clock.boot_id() != ""
    assert clock.boot_micros() <= clock.boot_micros()


def test_machine_without_boot_names_takes_each_open_for_a_boot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(clock, "_BOOT_ID", tmp_path / "nowhere")
    assert clock.boot_id().startswith("process-")
