"""Finding a processor by name: ours, an entry point, or a dotted name."""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points
from typing import Any

from listen_finalization.errors import SettingsError
from listen_finalization.processing.protocol import Processor

GROUP = "listen_finalization.processors"
"""The entry-point group in which a package offers processors."""

SETTING = "LISTEN_FINALIZATION_PROCESSOR"


def load_processor(name: str) -> Processor:
    """Build the processor that a setting names, without arguments.

    `extractive` is ours; `package.module:Class` is imported; any other name is looked up among
    the entry points of `GROUP`. Raises `SettingsError`, naming the setting and not its value,
    where it is not found, cannot be built or lacks a method.
    """
    factory = _factory(name)
    try:
        processor = factory()
    except Exception as error:
        raise SettingsError(f"{SETTING}: the processor cannot be built") from error
    if not all(callable(getattr(processor, step, None)) for step in ("enrich", "memories")):
        raise SettingsError(f"{SETTING}: the processor has no enrich and memories")
    return processor  # type: ignore[no-any-return]


def _factory(name: str) -> Any:
    if name == "extractive":
        from listen_finalization.processing.extractive import ExtractiveProcessor

        return ExtractiveProcessor
    try:
        if ":" in name:
            module, _, attribute = name.partition(":")
            return getattr(importlib.import_module(module), attribute)
        (found,) = entry_points(group=GROUP, name=name)
        return found.load()
    except Exception as error:
        raise SettingsError(f"{SETTING}: no such processor can be imported") from error
