"""What every verb and path of the production store costs, counted at the emulator.

A change of a number is a change of the product: edit `golden_operations.json` with it. What the
numbers mean in money and at which load is in docs/scale.md.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from firestore_wire.watch import Watch
from firestore_wire.work import Work

from .firestore_subject import FirestoreSubject
from .operations import SCENARIOS, Bench
from .whole_runs import WHOLE_RUNS

pytestmark = pytest.mark.xdist_group("firestore")

EVERY = {**SCENARIOS, **WHOLE_RUNS}
GOLDEN = json.loads(Path(__file__).with_name("golden_operations.json").read_text("utf-8"))


@pytest.fixture
async def bench(firestore: FirestoreSubject) -> AsyncIterator[Bench]:
    worker = FirestoreSubject(firestore.project)
    yield Bench(firestore, worker)
    await worker.close()


@pytest.mark.parametrize("name", EVERY)
async def test_path_costs_what_the_golden_file_says(
    name: str, bench: Bench, firestore_watch: Watch
) -> None:
    act = await EVERY[name](bench)
    with firestore_watch.counted() as work:
        await act()
        assert work().numbers() == GOLDEN[name]


def test_golden_file_covers_every_scenario_and_nothing_else() -> None:
    assert set(GOLDEN) == set(EVERY)


def test_whole_job_stays_within_its_aim() -> None:
    """Admission, claim and settlement; renewals and stored steps apart (issue 3)."""
    whole = Work(**GOLDEN["job"])

    assert whole.reads <= 5
    assert whole.writes <= 6
    assert whole.rpcs <= 7
