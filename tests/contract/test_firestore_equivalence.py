"""Any sequence of commands leaves Firestore and a pure application of `decide` with equal rows.

The embedded store is held against the same model by the same walks: what equals the model equals
the other store.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

import pytest
from google.cloud.firestore_v1 import AsyncClient

from listen_finalization.domain.commands import Command
from listen_finalization.domain.content import Segment
from listen_finalization.domain.decision import Answer
from listen_finalization.domain.job import Instant
from listen_finalization.errors import ConversationClosedError
from listen_finalization.outbox.conformance import POLICY
from listen_finalization.outbox.firestore import FirestoreStore
from listen_finalization.outbox.firestore.conversations import _results
from listen_finalization.outbox.firestore.jobs import decode_job
from listen_finalization.outbox.firestore.sight import alone
from listen_finalization.outbox.firestore.talk import decode_conversation, decode_structured

from .model import Model
from .test_model_equivalence import CONVERSATIONS, JOBS, UID, Equivalence, Rows, walk

pytestmark = pytest.mark.xdist_group("firestore")

Wait = Callable[[Coroutine[Any, Any, Any]], Any]


class Production:
    """The production store, in a project of its own."""

    def __init__(self, wait: Wait, clock: Callable[[], Instant]) -> None:
        project = f"p-{secrets.token_hex(8)}"
        self._wait = wait
        self._clock = clock
        self._store = FirestoreStore(project, POLICY, client=AsyncClient(project=project))
        self._rpc = self._store._rpc
        self._rpc._latest = lambda answers: clock()  # type: ignore[method-assign]

    def apply(self, command: Command) -> Answer:
        answer: Answer = self._wait(self._store.outbox.apply(command))
        return answer

    def expected(self, model: Model, command: Command) -> Answer:
        """Let the model see what this store sees: renewals and the like see no conversation."""
        seen = replace(model, conversations={}) if alone(command) else model
        return seen.apply(command, self._clock())

    def append(self, name: str, segment: Segment, *, byok: bool) -> None:
        stored = self._store.conversations.append(UID, name, (segment,), byok=byok)
        try:
            self._wait(stored)
        except ConversationClosedError:
            return

    def delete(self, name: str) -> None:
        self._wait(self._store.conversations.delete(UID, name))

    def rows(self) -> Rows:
        names = self._rpc.names
        rows = {key: names.job(key) for key in JOBS}
        steps = {key: names.results(key) for key in JOBS}
        talks = {name: names.conversation(UID, name) for name in CONVERSATIONS}
        every = (*rows.values(), *steps.values(), *talks.values())
        found = self._wait(self._rpc.read(every))
        seen = {name: d for name, place in talks.items() if (d := found.of(place))}
        return Rows(
            {key: decode_job(d) for key, name in rows.items() if (d := found.of(name))},
            {key: held for key, name in steps.items() if (held := _results(found, name))},
            {name: decode_conversation(UID, name, d, whole=False) for name, d in seen.items()},
            {name: held for name, d in seen.items() if (held := decode_structured(d))},
        )

    def close(self) -> None:
        self._wait(self._store.close())


@pytest.fixture
def machine(
    firestore_host: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Equivalence]]:
    """Makes a machine over a store of its own, all of them on one event loop."""
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_host)
    with asyncio.Runner() as runner:
        yield lambda: Equivalence(lambda clock: Production(runner.run, clock))


def test_firestore_equals_the_model_after_every_command(
    machine: Callable[[], Equivalence],
) -> None:
    walk(machine, 10, 40)


@pytest.mark.full
@pytest.mark.timeout(2_400)
def test_firestore_equals_the_model_over_long_walks(machine: Callable[[], Equivalence]) -> None:
    walk(machine, 300, 80)
