"""Commands on SQLite: read the row, decide, write the decision; the transaction is the caller's."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from listen_finalization.domain.codes import RefusalCode
from listen_finalization.domain.commands import Admit, Command, OwnedCommand
from listen_finalization.domain.conversation import Conversation
from listen_finalization.domain.decision import Answer, Decision, Refused
from listen_finalization.domain.job import IllegalJobError, Instant, Job
from listen_finalization.domain.policy import Policy
from listen_finalization.errors import RowUnreadableError
from listen_finalization.outbox.codec import (
    CONVERSATION_COLUMNS,
    JOB_COLUMNS,
    all_columns,
    decode_conversation,
    decode_job,
    dumps,
    memory_id,
    mutable_columns,
)
from listen_finalization.outbox.deciding import Deciding, deciding
from listen_finalization.outbox.statements import STATEMENTS


class CommandWriter:
    """Applies commands inside the transaction that its caller holds."""

    def __init__(self, connection: sqlite3.Connection, policy: Policy) -> None:
        self._connection = connection
        self._policy = policy

    def apply(self, command: Command, now: Instant) -> Answer:
        """Decide on a fresh read and write the decision; `now` was read under the write lock."""
        try:
            if isinstance(command, Admit):
                return self._admit(command, now)
            return self._command(command, now)
        except RowUnreadableError:  # raised by reads only, so nothing is written yet
            return Refused(RefusalCode.SCHEMA_NEWER)

    def _command(self, command: Any, now: Instant) -> Answer:
        """Decide a command on the row that it names, and write the decision."""
        job_key = command.claim.job_id if isinstance(command, OwnedCommand) else command.job_id
        row = self._one("read_job_and_conversation", (job_key,))
        if row is None:
            return self._settle(None, None, command, now)
        found = row[JOB_COLUMNS:]
        conversation = decode_conversation(found) if found[0] is not None else None
        return self._settle(decode_job(row), conversation, command, now)

    def _admit(self, command: Admit, now: Instant) -> Answer:
        row = self._one("read_conversation_and_job", (command.uid, command.conversation_id))
        if row is None:
            return self._settle(None, None, command, now)
        found = row[CONVERSATION_COLUMNS:]
        job = decode_job(found) if found[0] is not None else None
        return self._settle(job, decode_conversation(row), command, now)

    def _settle(
        self, job: Job | None, conversation: Conversation | None, command: Command, now: Instant
    ) -> Answer:
        answer, probed = self._decided(deciding(job, conversation, command, now, self._policy))
        if isinstance(answer, Decision):
            self._write(answer, (job, probed), conversation, now)
        return answer

    def _decided(self, steps: Deciding) -> tuple[Answer, Job | None]:
        """Read the rows that the decision asks for; return it and the last of them."""
        try:
            key = next(steps)
            while True:
                row = self._one("read_job", (key,))
                key = steps.send(None if row is None else decode_job(row))
        except StopIteration as decided:
            found: tuple[Answer, Job | None] = decided.value
            return found

    def _write(
        self,
        decision: Decision,
        rows: tuple[Job | None, Job | None],
        conversation: Conversation | None,
        now: Instant,
    ) -> None:
        if decision.changed:
            self._write_job(decision, rows)
        if decision.successor is not None:
            self._run("insert_job", all_columns(decision.successor))
        if decision.conversation is not None and decision.conversation != conversation:
            self._write_conversation(decision.conversation)
        if decision.changed:
            self._write_content(decision, rows[0], now)

    def _write_job(self, decision: Decision, rows: tuple[Job | None, Job | None]) -> None:
        after = decision.job
        if after is None:
            gone = rows[0]
            if gone is not None:
                seen = (gone.job_id, gone.dispatch_generation, gone.lease_epoch)
                self._guarded("delete_job", seen)
            return
        before = next((r for r in rows if r is not None and r.job_id == after.job_id), None)
        if before is None:
            self._run("insert_job", all_columns(after))
            return
        guard = (
            after.job_id,
            before.status,
            before.dispatch_generation,
            before.lease_epoch,
            before.updated_at,
        )
        self._guarded("update_job", (*mutable_columns(after), *guard))

    def _write_conversation(self, after: Conversation) -> None:
        self._guarded(
            "update_conversation",
            (
                after.status,
                after.discarded,
                after.requires_byok,
                after.job_id,
                after.revision,
                after.wanted_version,
                after.admitted_at,
                after.uid,
                after.conversation_id,
            ),
        )

    def _write_content(self, decision: Decision, job: Job | None, now: Instant) -> None:
        owner = decision.job or job
        if owner is None:
            return
        place = (owner.uid, owner.conversation_id)
        if decision.context is not None:
            self._run("store_context", (dumps(dict(decision.context)), *place))
        for result in decision.results:
            self._run("store_result", (owner.job_id, result.step, result.chunk, result.payload))
        for memory in decision.memories:
            key = memory_id(owner.conversation_id, memory.text)
            sources = dumps(list(memory.segment_ids))
            row = (owner.uid, key, owner.conversation_id, memory.text, sources, now)
            self._run("store_memory", row)
        if decision.publish:
            self._run("publish_record", (owner.job_id, *place))
        if decision.drop_results:
            self._run("drop_results", (owner.job_id,))

    def _run(self, name: str, values: Sequence[Any]) -> sqlite3.Cursor:
        return self._connection.execute(STATEMENTS[name], values)

    def _one(self, name: str, values: Sequence[Any]) -> Any:
        return self._run(name, values).fetchone()

    def _guarded(self, name: str, values: Sequence[Any]) -> None:
        """Run a write whose WHERE clause must hold: the write lock has been ours since the read."""
        if self._run(name, values).rowcount != 1:
            raise IllegalJobError
