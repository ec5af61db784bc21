"""A second act between the calls of a first one, and what either order would have left."""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from google.cloud.firestore_v1 import AsyncClient

from listen_finalization.domain.content import Segment
from listen_finalization.domain.decision import Answer, Decision
from listen_finalization.domain.job import Instant, seconds
from listen_finalization.errors import ConversationClosedError, StoreUnavailableError
from listen_finalization.outbox.conformance import POLICY
from listen_finalization.outbox.firestore import FirestoreStore
from listen_finalization.outbox.firestore.jobs import decode_job
from listen_finalization.outbox.firestore.talk import decode_conversation, decode_structured

from .start_states import NAME, STATES, Act, Append, Delete, World, acts, laid

START = seconds(1_700_000_000)

Told = Answer | int | bool | str
Rows = tuple[Any, ...]
Outcome = tuple[tuple[Told, Told], Rows]


@dataclass(frozen=True)
class Case:
    """A start state, two acts by name, and whether the first one's store knows the job already."""

    state: str
    first: str
    second: str
    warm: bool


class Desk:
    """One process's store, with the test's clock and a hook before each of its calls."""

    def __init__(self, client: AsyncClient, clock: Callable[[], int]) -> None:
        self.store = FirestoreStore("p", POLICY, client=client)
        self.rpc = self.store._rpc
        self.calls = 0
        self.losing = False
        self.hook: Callable[[], Awaitable[None]] | None = None
        self._commit, self._read = self.rpc.commit, self.rpc.read
        self.rpc._latest = lambda answers: Instant(clock())  # type: ignore[method-assign]
        self.rpc.commit = self.commit  # type: ignore[method-assign]
        self.rpc.read = self.read  # type: ignore[method-assign]

    async def commit(self, writes: Sequence[Any]) -> None:
        await self._called()
        await self._commit(writes)
        if self.losing:
            self.losing = False
            raise StoreUnavailableError

    async def read(self, names: Sequence[str], mask: Sequence[str] | None = None) -> Any:
        await self._called()
        return await self._read(names, mask)

    async def _called(self) -> None:
        self.calls += 1
        if self.hook is not None:
            await self.hook()

    async def act(self, world: World, act: Act) -> Told:
        talks = self.store.conversations
        match act:
            case Append():
                said = Segment(act.segment, "a", 0.0, 1.0, "words")
                try:
                    return await talks.append(world.uid, NAME, (said,), byok=act.byok)
                except ConversationClosedError:
                    return "closed"
            case Delete():
                return await talks.delete(world.uid, NAME)
        return await self.store.outbox.apply(act)


def made(state: str, uid: str) -> World:
    world = World(uid, START)
    STATES[state](world)
    return world


def modelled(world: World, act: Act, later: int = 0) -> Told:
    """Do the act on the model, `later` microseconds on, and return what a store would tell."""
    match act:
        case Append():
            if world.conversation.deleted or world.conversation.discarded:
                return "closed"
            world.model.append(NAME, byok=act.byok)
            return world.conversation.content_version
        case Delete():
            there = not world.conversation.deleted
            world.model.delete(NAME)
            return there
    world.now += later
    answer = world.apply(act)
    world.now -= later
    return answer


def ordered(world: World, pair: tuple[Act, Act], at: int, *, swapped: bool = False) -> Outcome:
    """Return both answers and all rows of one order; the second act's time is always 1."""
    twin = world.copy()
    if swapped:
        two = modelled(twin, pair[1], 1)
        return (modelled(twin, pair[0], at), two), rows_of_model(twin)
    return (modelled(twin, pair[0], at), modelled(twin, pair[1], 1)), rows_of_model(twin)


def repeated(world: World, pair: tuple[Act, Act]) -> Rows:
    """Return the rows where the first act is done, then the second, then the first again."""
    twin = world.copy()
    for act, later in ((pair[0], 0), (pair[1], 1), (pair[0], 2)):
        modelled(twin, act, later)
    return rows_of_model(twin)


def changing(world: World) -> list[str]:
    """Return the acts that change something in this state."""
    found = []
    for name, act in acts(world, "a").items():
        told = modelled(world.copy(), act)
        decided = isinstance(told, Decision) and (told.changed or told.conversation is not None)
        if decided or isinstance(act, Append | Delete):
            found.append(name)
    return found


def cases() -> Iterator[Case]:
    """Return every pair that matters: where the second act changes nothing, nothing can happen.

    A first act that changes nothing can still see two instants, where it looks twice.
    """
    for state in STATES:
        start = made(state, "u")
        names = changing(start)
        for first, second, warm in itertools.product(acts(start, "a"), names, (True, False)):
            if first in names or not warm:
                yield Case(state, first, second, warm)


def rows_of_model(world: World) -> Rows:
    model = world.model
    results = {key: dict(held) for key, held in model.results.items() if held}
    published = model.published.get(NAME)
    record = json.loads(published) if published else None
    return dict(model.jobs), results, model.conversations.get(NAME), record, set(world.memories)


async def rows_of_store(desk: Desk, world: World, keys: set[str]) -> Rows:
    """Read the conversation with its memories, and the rows and step results of these ids."""
    names, talks = desk.rpc.names, desk.store.conversations
    place = names.conversation(world.uid, NAME)
    found = await desk.rpc.read([place, *map(names.job, keys)])
    jobs = {key: decode_job(row) for key in keys if (row := found.of(names.job(key)))}
    steps = {key: dict(held) for key in keys if (held := await talks.results(key))}
    record = await talks.find(world.uid, NAME)
    memories = {memory.text for memory in record.memories} if record else set()
    document = found.of(place)
    if document is None:
        return jobs, steps, None, None, memories
    talk = decode_conversation(world.uid, NAME, document, whole=False)
    return jobs, steps, talk, decode_structured(document), memories


class Bench:
    """Runs cases on one emulator, each under a user of its own."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._users = itertools.count()

    async def interleave(self, case: Case) -> None:
        """Do the second act before each later call of the first: the outcome is of some order."""
        place = 2
        while await self._interleaved(case, place):
            place += 1

    async def _interleaved(self, case: Case, place: int) -> bool:
        """Return False where the first act makes fewer calls than that."""
        trial = _Trial(self._client, case, f"u{next(self._users)}")
        await trial.lay()
        answers = await trial.run(lambda: trial.mine.calls == place)
        if answers is None:
            return False
        orders = [
            ordered(trial.world, trial.pair, at, swapped=swapped)
            for at, swapped in itertools.product((0, 2), (False, True))
        ]
        rows = await trial.rows({key for _, (jobs, *_) in orders for key in jobs})
        assert (answers, rows) in orders, (case, place, answers, rows, orders)
        return True

    async def lose(self, case: Case) -> None:
        """Do the second act right behind a commit of the first whose answer is lost.

        The first is then done, or done and repeated behind the second; nothing else.
        """
        trial = _Trial(self._client, case, f"u{next(self._users)}")
        await trial.lay()
        trial.mine.losing = True
        answers = await trial.run(lambda: not trial.mine.losing)
        if answers is None:
            return
        _, once = ordered(trial.world, trial.pair, 0)
        twice = repeated(trial.world, trial.pair)
        rows = await trial.rows({*once[0], *twice[0]})
        assert rows in (once, twice), (case, answers, rows, once, twice)


class _Trial:
    """One case under way."""

    def __init__(self, client: AsyncClient, case: Case, uid: str) -> None:
        self.world = made(case.state, uid)
        self.pair = acts(self.world, "a")[case.first], acts(self.world, "b")[case.second]
        self._warm = case.warm
        self._told: list[Told] = []
        now = self.world.now
        self.mine = Desk(client, lambda: now + (2 if self._told else 0))
        self._other = Desk(client, lambda: now + 1)

    async def lay(self) -> None:
        """Lay the start state into the store."""
        await self._other.commit(laid(self.world, self._other.rpc.names))
        if self._warm:
            await self.mine.store.outbox.find(self.world.uid, NAME)
            for job in self.world.model.jobs.values():
                place = (job.uid, job.conversation_id)
                self.mine.store.outbox._looking._places.learn(job.job_id, place)
        self.mine.calls = 0

    async def run(self, now: Callable[[], bool]) -> tuple[Told, Told] | None:
        """Do the first act, and the second one before the first call at which `now` says so."""

        async def between() -> None:
            if now() and not self._told:
                self._told.append(await self._other.act(self.world, self.pair[1]))

        self.mine.hook = between
        answer = await self.mine.act(self.world, self.pair[0])
        self.mine.hook = None
        return (answer, self._told[0]) if self._told else None

    async def rows(self, keys: set[str]) -> Rows:
        return await rows_of_store(self.mine, self.world, keys)
