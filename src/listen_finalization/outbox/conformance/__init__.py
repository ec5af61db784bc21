"""The conformance suite: what every Outbox, Conversations and Records adapter must do.

Run each check of `CASES` against a store of its own, made with `POLICY`:

    @pytest.mark.parametrize("name", CASES)
    async def test_store(name: str, subject: Subject) -> None:
        await CASES[name](subject)

A check raises `AssertionError` for a broken rule; its name states the rule.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import MappingProxyType, ModuleType

from listen_finalization.outbox.conformance import (
    admission,
    content,
    operators,
    owner,
    queries,
    reattach,
    records,
    recovery,
    results,
    unreadable,
    values,
)
from listen_finalization.outbox.conformance.subject import POLICY, Check, Subject

__all__ = ["CASES", "POLICY", "Check", "Subject"]

_MODULES = (
    admission,
    reattach,
    owner,
    results,
    recovery,
    operators,
    queries,
    unreadable,
    content,
    records,
    values,
)


def _checks(module: ModuleType) -> Mapping[str, Check]:
    """Return the checks of a module: its own public coroutine functions."""
    return {
        name: found
        for name, found in vars(module).items()
        if inspect.iscoroutinefunction(found)
        and found.__module__ == module.__name__
        and not name.startswith("_")
    }


CASES: Mapping[str, Check] = MappingProxyType(
    {name: check for module in _MODULES for name, check in _checks(module).items()}
)
