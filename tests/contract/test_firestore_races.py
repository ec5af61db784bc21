"""Random commands of several processes over bad lines: a serial history, no invariant broken."""

from __future__ import annotations

import asyncio
import json
import random
import secrets
from dataclasses import replace
from typing import Any

import pytest

from integration.invariants import Tables, check_tables
from listen_finalization.domain.codes import Actor, Status
from listen_finalization.domain.commands import Admit
from listen_finalization.domain.decision import Decision
from listen_finalization.domain.job import Instant, Job, seconds
from listen_finalization.outbox.codec import encode_effects, encode_history
from listen_finalization.outbox.conformance import POLICY
from listen_finalization.outbox.firestore.sight import alone

from .model import Model
from .storm import UID, Gone, Process, Said, Storm, Taken, changed, every_job

pytestmark = pytest.mark.xdist_group("firestore")

NAMES = ("c1", "c2")
DAY = seconds(86_400)


def _replayed(taken: list[Taken]) -> Model:
    """Apply the accepted commits one after another; each must do what it did."""
    model, heard = Model(POLICY, UID), set[str]()
    for one in sorted(taken, key=lambda note: note.at):
        match one.act:
            case Said(name, segment, byok):
                if segment not in heard:
                    model.append(name, byok=byok)
                heard.add(segment)
            case Gone(name):
                model.delete(name)
            case command:
                seen = replace(model, conversations={}) if alone(command) else model
                answer = seen.apply(command, Instant(one.now))
                assert isinstance(answer, Decision), (one, answer)
                if not answer.changed and answer.conversation is None:
                    _wish(model, command)
    return model


def _wish(model: Model, command: object) -> None:
    """Note a wish whose job was given back behind its look: the conversation alone guards it.

    It stands as if it had been noted before; a claim reads at least as much as it asks for.
    """
    assert isinstance(command, Admit), command
    held = model.conversations[command.conversation_id]
    noted = replace(held, wanted_version=held.content_version)
    model.conversations[command.conversation_id] = noted


async def _history_is_serial(storm: Storm, reader: Process) -> None:
    model = _replayed(storm.taken)
    for key in every_job(NAMES):
        assert await reader.store.outbox.get(key) == model.jobs.get(key)
        held = await reader.store.conversations.results(key)
        assert held == model.results.get(key, {})
    for name in NAMES:
        found = await reader.store.conversations.find(UID, name)
        assert (found.conversation if found else None) == model.conversations.get(name)
        told = model.published.get(name)
        assert (found.structured if found else None) == (json.loads(told) if told else None)


def _claims_are_ordered(processes: list[Process]) -> None:
    """Of all claims that were answered as made, no two have the same epoch of a row."""
    made = [
        (answer.job.job_id, answer.job.lease_epoch)
        for process in processes
        for answer in process.answers
        if changed(answer) and isinstance(answer, Decision) and answer.did == "claim"
        if answer.job is not None and answer.job.status is Status.LEASED
    ]
    assert len(made) == len(set(made))


async def _jobs(reader: Process) -> list[Job]:
    return [job for key in every_job(NAMES) if (job := await reader.store.outbox.get(key))]


async def _open_rows_are_found(storm: Storm, reader: Process) -> None:
    storm.shift += DAY
    page = await reader.store.outbox.due(1_000)
    found = {row.job_id for row in page.rows}
    waiting = (Status.QUEUED, Status.LEASED)
    assert found == {job.job_id for job in await _jobs(reader) if job.status in waiting}


async def _tables(reader: Process) -> Tables:
    jobs, client = await _jobs(reader), reader.store._rpc._client
    talks = [_row(found) async for found in client.collection_group("conversations").stream()]
    steps = client.collection("conversation_finalization_results").stream()
    memories = [_row(found) async for found in client.collection_group("memories").stream()]
    return Tables(
        [_columns(job) for job in jobs], talks, [{"job_id": d.id} async for d in steps], memories
    )


def _row(found: Any) -> dict[str, Any]:
    blank = dict.fromkeys(("structured", "finalization_job_id", "finalization_revision"))
    place = {"uid": UID, "conversation_id": found.id}
    return {**blank, **place, **found.to_dict()}


def _columns(job: Job) -> dict[str, Any]:
    plain = {name: getattr(job, name) for name in job.__slots__}
    told = {"history": encode_history(job.history), "effects": encode_effects(job.effects)}
    return {**plain, **told}


async def _ride_out(seed: int, *, processes: int, commands: int, faults: float) -> None:
    storm = Storm(random.Random(seed), NAMES, faults)
    project = f"p-{secrets.token_hex(8)}"
    running = [Process(storm, project, f"p{number}") for number in range(processes)]
    try:
        await asyncio.gather(*(process.run(commands) for process in running))
        await asyncio.gather(*storm.late)
        storm.faults = 0
        reader = running[0]
        for name in NAMES:
            await reader.do(Admit(UID, name, adopt=True, actor=Actor.SWEEP))
        await _history_is_serial(storm, reader)
        _claims_are_ordered(running)
        check_tables(await _tables(reader), max_attempts=POLICY.max_attempts, settled=False)
        await _open_rows_are_found(storm, reader)
    finally:
        for process in running:
            await process.store.close()


@pytest.mark.parametrize("faults", [0.0, 0.25])
@pytest.mark.parametrize("seed", range(3))
async def test_racing_processes_leave_a_serial_history(
    firestore_host: str, monkeypatch: pytest.MonkeyPatch, seed: int, faults: float
) -> None:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_host)
    run = seed * 10 + int(faults * 4)
    await _ride_out(run, processes=4, commands=25, faults=faults)


@pytest.mark.full
@pytest.mark.timeout(2_400)
@pytest.mark.parametrize("faults", [0.0, 0.1, 0.4])
async def test_long_races_leave_a_serial_history(
    firestore_host: str, monkeypatch: pytest.MonkeyPatch, faults: float
) -> None:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_host)
    for seed in range(40):
        run = 1_000 + seed * 10 + int(faults * 10)
        await _ride_out(run, processes=6, commands=60, faults=faults)
