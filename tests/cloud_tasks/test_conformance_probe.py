"""The probe of the specification, with the real client and from outside, passes whole."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from listen_finalization.testing.cloud_tasks import CloudTasksServer

PROBE = Path(__file__).parents[3] / "shared" / "tools" / "tasks_conformance.py"

pytestmark = pytest.mark.skipif(
    not PROBE.is_file(), reason=f"the probe is not at ../shared/tools/{PROBE.name}"
)


async def probe(server: CloudTasksServer, *arguments: str) -> tuple[int | None, str]:
    running = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROBE),
        *("--host", server.address),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await running.communicate()
    return running.returncode, out.decode()


async def test_every_check_of_the_probe_passes() -> None:
    async with CloudTasksServer() as server:
        code, told = await probe(server, "--jwks", server.keys_url)
    assert code == 0, told
    assert "'FAIL': 0" in told and "VERIFIED iss=https://accounts.google.com" in told


async def test_what_the_probe_wrote_is_there_after_a_restart(tmp_path: Path) -> None:
    async with CloudTasksServer(state=tmp_path / "state") as server:
        assert await probe(server, "--persist-write") == (0, "written\n")
    async with CloudTasksServer(state=tmp_path / "state") as server:
        code, told = await probe(server, "--persist-check")
    assert code == 0 and told.startswith("PASS persistence"), told
