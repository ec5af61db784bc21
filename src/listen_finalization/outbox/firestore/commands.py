"""Commands on Firestore: one read of all that matters, a decision, one guarded commit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from listen_finalization.domain.codes import RefusalCode, Step
from listen_finalization.domain.commands import Admit, Checkpoint, Command, Complete
from listen_finalization.domain.decision import Answer, Decision, Refused
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import (
    RowUnreadableError,
    StoreBusyError,
    StoreUnavailableError,
    ValueRefusedError,
)
from listen_finalization.outbox.deciding import deciding
from listen_finalization.outbox.firestore.attempts import repeated
from listen_finalization.outbox.firestore.fields import Reading
from listen_finalization.outbox.firestore.names import nameable
from listen_finalization.outbox.firestore.plan import Seen, memory_names, plan
from listen_finalization.outbox.firestore.publishing import coded, fitted, publishable
from listen_finalization.outbox.firestore.rpc import Document, Rpc
from listen_finalization.outbox.firestore.sight import Looking, Sight, context_size


class Commands:
    """Applies commands; the state of one application lives in an `_Application` of its own."""

    def __init__(self, rpc: Rpc, policy: Policy, looking: Looking) -> None:
        self._rpc = rpc
        self._policy = policy
        self._looking = looking

    async def apply(self, command: Command) -> Answer:
        """Decide the command and commit its decision; repeats itself while others are faster."""
        application = _Application(self._rpc, self._policy, self._looking, command)
        try:
            _refuse_unpublishable(command)
            return await repeated(application.attempt)
        except RowUnreadableError:  # raised by reads only, so nothing is written yet
            return Refused(RefusalCode.SCHEMA_NEWER)


def _refuse_unpublishable(command: Command) -> None:
    """Raise `ValueRefusedError` for a record that a settlement could not publish."""
    if isinstance(command, Checkpoint):
        for result in command.results:
            if (result.step, result.chunk) == (Step.ENRICH, 0):
                publishable(result.payload)


class _Application:
    """One command, from its first attempt to its answer.

    The first attempt is hopeful: it takes another revision's row and the memories to be absent,
    which their creation proves, and the document to have room, which its commit proves. What did
    not prove itself is read by the next attempt.
    """

    def __init__(self, rpc: Rpc, policy: Policy, looking: Looking, command: Command) -> None:
        self._rpc = rpc
        self._policy = policy
        self._looking = looking
        self._command = command
        self._hopeful = True
        self._whole = isinstance(command, Complete)
        self._unknown: list[Decision] = []

    async def attempt(self, number: int) -> Answer:
        """Look, decide and commit once. Raises `StoreBusyError` to be called again."""
        self._hopeful = number == 0
        while True:
            sight = await self._look()
            arrived = self._arrived(sight)
            if arrived is not None:
                return arrived
            answer, probed = await self._decided(sight)
            if isinstance(answer, Decision) and answer.publish and not sight.whole:
                self._whole = True
            elif not sight.split or _proves_itself(answer):
                return await self._committed(answer, sight, probed)

    def _arrived(self, sight: Sight) -> Decision | None:
        """Return the transition of an earlier attempt, of unknown outcome, that the row shows."""
        found = (told for told in self._unknown if told.changed and told.job == sight.job)
        return next(found, None)

    async def _look(self) -> Sight:
        command = self._command
        if not isinstance(command, Admit):
            return await self._looking.at_command(command, whole=self._whole)
        place = (command.uid, command.conversation_id)
        if not nameable(*place):
            return Sight(await self._looking.now())
        incoming = context_size(command)
        return await self._looking.at_conversation(place, whole=self._whole, incoming=incoming)

    async def _decided(self, sight: Sight) -> tuple[Answer, Document | None]:
        """Run the decision, reading the rows of other revisions that it asks for."""
        steps = deciding(sight.job, sight.conversation, self._command, sight.now, self._policy)
        document: Document | None = None
        try:
            wanted = next(steps)
            while True:
                job = None
                if not self._hopeful:
                    job, document = await self._looking.row(wanted)
                wanted = steps.send(job)
        except StopIteration as end:
            answer: Answer = end.value[0]
            return answer, document

    async def _committed(self, answer: Answer, sight: Sight, probed: Document | None) -> Answer:
        if not isinstance(answer, Decision):
            return answer
        answer, structured = _published(answer, sight)
        seen = Seen(sight, probed, structured, await self._memories(answer))
        writes = plan(answer, seen, self._rpc.names)
        if writes:
            await self._commit(writes, answer)
            self._looking.learn(answer)
        return answer

    async def _memories(self, decision: Decision) -> frozenset[str]:
        """Return which of the memories are stored already."""
        owner = decision.job
        if self._hopeful or not decision.memories or owner is None:
            return frozenset()
        return await self._looking.present(tuple(memory_names(decision, owner, self._rpc.names)))

    async def _commit(self, writes: list[Any], decision: Decision) -> None:
        try:
            await self._rpc.commit(writes)
        except StoreUnavailableError:
            self._unknown.append(decision)
            raise
        except ValueRefusedError:
            if self._whole or not isinstance(self._command, Admit):
                raise
            self._whole = True
            raise StoreBusyError from None


def _proves_itself(answer: Answer) -> bool:
    """Whether its commit is guarded by all that the answer was decided on."""
    return isinstance(answer, Decision) and answer.changed


def _published(decision: Decision, sight: Sight) -> tuple[Decision, Any]:
    """Return the decision with the record to publish, shortened and coded where it must be."""
    document, results = sight.conversation_document, sight.results
    if not decision.publish or document is None or results is None or decision.job is None:
        return decision, None
    payload = _payload(results)
    if payload is None:
        return decision, None
    value, lost = fitted(payload, document)
    if not lost:
        return decision, value
    return replace(decision, job=coded(decision.job)), value


def _payload(results: Document) -> str | None:
    """Return the stored enrich record."""
    return Reading(Reading(results.fields).map(Step.ENRICH)).text("0")
