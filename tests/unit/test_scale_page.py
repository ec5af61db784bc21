"""docs/scale.md: its figures follow from the counted operations."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def scale() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scale", DOCS / "scale.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_is_what_the_counts_say(scale: ModuleType) -> None:
    _, _, written = (DOCS / "scale.md").read_text("utf-8").partition("-->\n\n")
    assert written == scale.page()


def test_every_figure_is_told(scale: ModuleType) -> None:
    template = (DOCS / "scale.template.md").read_text("utf-8")
    assert set(re.findall(r"\$(\w+)", template)) == scale.figures().keys()


def test_price_is_the_sum_of_what_is_billed(scale: ModuleType) -> None:
    assert scale.price((100_000, 0, 0), "us-central1") == pytest.approx(0.03)
    assert scale.price((0, 100_000, 0), "us-central1") == pytest.approx(0.09)
    assert scale.price((0, 0, 100_000), "us-central1") == pytest.approx(0.01)
    assert scale.price((100_000, 100_000, 100_000), "nam5") == pytest.approx(0.26)


def test_operations_of_a_path_hold_its_stored_steps(scale: ModuleType) -> None:
    told = scale.GOLDEN["complete"]
    assert scale.operations("complete") == (
        told["reads"] + told["step_reads"],
        told["writes"] + told["step_writes"],
        told["deletes"] + told["step_deletes"],
    )


def test_load_of_a_limit_is_the_limit_by_what_a_job_uses(scale: ModuleType) -> None:
    figures = scale.figures()
    rows = scale.GOLDEN["job_run"]["job_writes"]
    assert figures["slot_rate"] == "0.2"
    assert figures["sequential_rate"] == str(500 // rows)
    assert figures["concurrency_rate"] == "250"
