"""cst-hangup: a client that resets its connection leaves no conversation in between."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .checks import all_checks
from .ground import Ground, ProjectGround
from .house import House, house

COUNT = 200
WAITS = (0.0, 0.001, 0.005, 0.02, 0.1)
USERS = 8
"""Users among whom the calls are spread."""
WHOLE = ("completed", True, True)
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: closing sends RST and drops what was not read."""


def hang_up(port: int, token: str, number: int) -> None:
    """Send one finalize and reset the connection after its wait."""
    body = b'{"calendar_meeting_context": {"title": "A"}}'
    head = (
        f"POST /v1/conversations/c{number}/finalize HTTP/1.1\r\nHost: house.example\r\n"
        f"Authorization: {token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), timeout=10) as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        cut = len(body) if number % 10 else 5  # every tenth leaves in the middle of its body
        held.sendall(head.encode() + body[:cut])
        time.sleep(WAITS[number % len(WAITS)])


async def hang_up_all(home: House, port: int, count: int) -> None:
    tokens = [home.token(f"user{number}") for number in range(USERS)]
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(16) as pool:
        calls = [
            loop.run_in_executor(pool, hang_up, port, tokens[number % USERS], number)
            for number in range(count)
        ]
        await asyncio.gather(*calls)


def state(row: dict[str, Any]) -> tuple[str, bool, bool]:
    context, job_id = row["calendar_meeting_context"], row["finalization_job_id"]
    return row["status"], job_id is not None, context is not None


async def test_a_hangup_leaves_all_or_nothing(ground: Ground) -> None:
    count = 80 if isinstance(ground, ProjectGround) else COUNT
    async with house(ground, finalize_per_minute=6_000) as home:
        for number in range(count):
            await home.spoken(f"c{number}", uid=f"user{number % USERS}")
        async with home.served() as port:
            while len(await home.jobs()) < count // 4:  # resets before a slow server had read
                await hang_up_all(home, port, count)
                await home.until(home.idle)
        await home.settled()
        states = Counter(map(state, (await ground.tables()).conversations))
        assert set(states) <= {("in_progress", False, False), WHOLE}
        admitted = len(await home.jobs())
        assert sum(home.processor.runs.values()) == admitted == states[WHOLE]
        await all_checks(home)
