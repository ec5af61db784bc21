"""A real HTTP target that answers what the test says and notes what it got."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes = field(repr=False)
    names: tuple[str, ...] = field(default=(), repr=False)

    def service(self, name: str) -> str | None:
        """Return one X-CloudTasks header."""
        return self.headers.get(f"x-cloudtasks-{name}")


class Receiver:
    """Answers `statuses` in their order, then 200; with `hold` cleared it does not answer."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.statuses: deque[int] = deque()
        self.headers: dict[str, str] = {}
        self.hold = asyncio.Event()
        self.hold.set()
        self.now = self.most = 0
        self.cut = 0
        self._changed = asyncio.Condition()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self.hold.set()
        self._server.close()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def arrived(self, count: int) -> list[Received]:
        """Wait for that many requests in all."""
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)
        return list(self.requests)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = head[0].split(" ")
        pairs = [line.partition(":") for line in head[1:] if line]
        names = tuple(name.lower() for name, _, _ in pairs)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        await self._note(Received(method, path, headers, body, names))
        gone = asyncio.ensure_future(reader.read())
        held = asyncio.ensure_future(self.hold.wait())
        await asyncio.wait({gone, held}, return_when=asyncio.FIRST_COMPLETED)
        self.now -= 1
        self.cut += gone.done() and not held.done()
        for one in (gone, held):
            one.cancel()
        status = self.statuses.popleft() if self.statuses else 200
        extra = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        writer.write(f"HTTP/1.1 {status} X\r\n{extra}Content-Length: 2\r\n\r\nok".encode())
        writer.close()

    async def _note(self, received: Received) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        async with self._changed:
            self.requests.append(received)
            self._changed.notify_all()
