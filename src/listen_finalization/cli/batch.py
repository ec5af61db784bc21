"""Many files at once: each is read, stored, admitted and followed; none stops the others."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.faults import CommandError, Told, told
from listen_finalization.cli.gateway import Gateway
from listen_finalization.cli.progress import Progress
from listen_finalization.cli.stages import Stage, exit_of, over, reached, succeeded
from listen_finalization.cli.transcripts import Transcript, read_transcript
from listen_finalization.errors import ListenFinalizationError
from listen_finalization.http.models import FinalizationAnswer, RecordAnswer

READERS = 4
"""Files that are read at once: a transcript of 64 MiB takes several times that."""
AT_ONCE = 32
"""Files that are under way at once."""


@dataclass(frozen=True, slots=True)
class Finalized:
    """What became of one file; `answer` and `record` are None where it did not come so far."""

    path: Path
    conversation_id: str | None = None
    answer: FinalizationAnswer | None = None
    record: RecordAnswer | None = field(default=None, repr=False)
    seconds: float = 0.0
    fault: Told | None = None

    @property
    def exit_code(self) -> ExitCode:
        if self.fault is not None:
            return self.fault.code
        return ExitCode.UNFINISHED if self.answer is None else exit_of(self.answer)

    def document(self) -> dict[str, Any]:
        """Return the record as JSON shows it, with every key in every case."""
        answer, record = self.answer, self.record
        made = dict((record.structured if record else None) or {})
        keys = ("title", "overview", "category", "action_items", "events")
        return {
            "file": str(self.path),
            "conversation_id": self.conversation_id,
            "job_id": answer.job_id if answer else None,
            "status": answer.status if answer else None,
            "outcome": answer.outcome if answer else None,
            "failure_code": answer.failure_code if answer else None,
            "discarded": record.conversation.discarded if record else None,
            **{key: made.get(key) for key in keys},
            "memories": [m.model_dump() for m in record.memories] if record else None,
            "attempts": answer.attempt_count if answer else None,
            "seconds": round(self.seconds, 3),
            "error": _error(self.fault),
        }


def _error(fault: Told | None) -> dict[str, str] | None:
    if fault is None:
        return None
    return {"code": fault.word, "message": "; ".join(fault.lines), "next": fault.remedy}


class Batch:
    """One run of `finalize`: the gateway, what it asks for, and who is told."""

    def __init__(
        self, gateway: Gateway, progress: Progress, *, force: bool, timeout: float
    ) -> None:
        """`timeout` is seconds for one file, from its storing to the end of its job."""
        self._gateway = gateway
        self._progress = progress
        self._force = force
        self._timeout = timeout
        self._readers = asyncio.Semaphore(READERS)
        self._under_way = asyncio.Semaphore(AT_ONCE)

    async def run(self, paths: Sequence[Path]) -> list[Finalized]:
        """Finalize every file and return what became of each, in their order."""
        named = await asyncio.gather(*map(self._named, paths))
        shared = _shared(named)
        return list(await asyncio.gather(*(self._one(file, shared) for file in named)))

    async def _named(self, path: Path) -> Finalized:
        """Find the conversation's id; the words are read again when it is the file's turn."""
        try:
            transcript = await self._read(path)
        except ListenFinalizationError as fault:
            return Finalized(path, fault=told(fault))
        return Finalized(path, transcript.conversation_id)

    async def _read(self, path: Path) -> Transcript:
        async with self._readers:
            return await asyncio.to_thread(read_transcript, path)

    async def _one(self, file: Finalized, shared: Counter[str | None]) -> Finalized:
        async with self._under_way:
            began = time.monotonic()
            try:
                _demand_alone(file, shared)
                found = await self._finalized(file)
            except ListenFinalizationError as fault:
                found = replace(file, fault=told(fault))
        code = found.fault.word if found.fault else None
        if code is not None:
            self._progress.note(file.path, Stage.FAILED, code)
        return replace(found, seconds=time.monotonic() - began)

    async def _finalized(self, file: Finalized) -> Finalized:
        if file.fault is not None or file.conversation_id is None:
            return file
        key, last = file.conversation_id, file
        try:
            async with asyncio.timeout(self._timeout):
                await self._store(file, key)
                await self._gateway.admit(key, force=self._force)
                async for answer in self._followed(file.path, key):
                    last = replace(file, answer=answer)
                record = await self._gateway.record(key)
        except TimeoutError:
            return replace(last, fault=told(_late(self._timeout)))
        return replace(last, record=record)

    async def _store(self, file: Finalized, key: str) -> None:
        transcript = await self._read(file.path)
        if transcript.conversation_id != key:
            raise _fault(f"{file.path}: the file changed meanwhile", "file_changed")
        await self._gateway.store(transcript)
        self._progress.note(file.path, Stage.STORED)

    async def _followed(self, path: Path, key: str) -> AsyncIterator[FinalizationAnswer]:
        """Yield what the stack answers until the job is over, and tell each new stage once."""
        told_stages: set[Stage] = set()
        looked = 0
        while True:
            answer = await self._gateway.standing(key)
            if answer.retryable or answer.terminal:
                self._progress.attempt(path, answer.attempt_count or 0, answer.failure_code)
            for stage in reached(answer):
                if stage not in told_stages:
                    told_stages.add(stage)
                    self._progress.note(path, stage, _code(answer, stage))
            yield answer
            if over(answer):
                return
            await asyncio.sleep(self._gateway.wait(answer, looked))
            looked += 1


def _code(answer: FinalizationAnswer, stage: Stage) -> str | None:
    if stage is not Stage.FAILED or succeeded(answer):
        return None
    return answer.failure_code or answer.outcome or answer.status


def _shared(named: Iterable[Finalized]) -> Counter[str | None]:
    return Counter(file.conversation_id for file in named if file.conversation_id is not None)


def _demand_alone(file: Finalized, shared: Counter[str | None]) -> None:
    if shared[file.conversation_id] > 1:
        detail = f"{file.path}: conversation {file.conversation_id} is in another file too"
        raise _fault(detail, "same_conversation")


def _fault(detail: str, word: str) -> CommandError:
    remedy = "give each file an id of its own: rename it, or set its id in JSON"
    return CommandError(detail, code=ExitCode.USAGE, remedy=remedy, word=word)


def _late(timeout: float) -> CommandError:
    return CommandError(
        f"the job was not over within {timeout:g} s; it goes on where the stack does",
        code=ExitCode.UNFINISHED,
        remedy="ask again later, or give a longer --timeout",
        word="timeout",
    )
