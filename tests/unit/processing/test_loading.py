"""Finding a processor by name; a bad name is told by its setting, never by its value."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import pytest

from listen_finalization.errors import SettingsError
from listen_finalization.processing import loading
from listen_finalization.processing.extractive import ExtractiveProcessor
from listen_finalization.processing.loading import SETTING, load_processor
from listen_finalization.testing.processor import FakeProcessor

FAKE = "listen_finalization.testing.processor:FakeProcessor"


def test_the_embedded_default_is_ours() -> None:
    assert isinstance(load_processor("extractive"), ExtractiveProcessor)


def test_a_dotted_name_is_imported_and_built() -> None:
    assert isinstance(load_processor(FAKE), FakeProcessor)


def test_another_name_is_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    point = importlib.metadata.EntryPoint("mine", FAKE, loading.GROUP)

    def points(**asked: Any) -> list[importlib.metadata.EntryPoint]:
        assert asked == {"group": loading.GROUP, "name": "mine"}
        return [point]

    monkeypatch.setattr(loading, "entry_points", points)
    assert isinstance(load_processor("mine"), FakeProcessor)


@pytest.mark.parametrize("found", [0, 2])
def test_an_entry_point_must_be_the_only_one(found: int, monkeypatch: pytest.MonkeyPatch) -> None:
    point = importlib.metadata.EntryPoint("mine", FAKE, loading.GROUP)
    monkeypatch.setattr(loading, "entry_points", lambda **_: [point] * found)
    with pytest.raises(SettingsError):
        load_processor("mine")


@pytest.mark.parametrize(
    "name",
    [
        "canary",
        "canary.module:Thing",
        "json:canary",
        "json:",
        ":canary",
        "json:dumps",
        "json:JSONDecoder",
        "listen_finalization.domain.content:Memory",
        "collections:OrderedDict",
    ],
)
def test_a_name_that_gives_no_processor_is_refused_without_its_value(name: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_processor(name)
    assert str(caught.value).startswith(SETTING)
    assert "canary" not in str(caught.value)
