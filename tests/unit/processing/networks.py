"""A network that opens nothing: addresses to judge, a resolver and a connector that take notes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import httpcore

from listen_finalization.processing.network import GuardedNetwork

PUBLIC = "93.184.215.14"
PRIVATE = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "2002:808:808::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd20:ce::254",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]
GLOBAL = [PUBLIC, "8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::808:808"]


class Answers:
    """A resolver that gives one prepared answer per call, and counts the calls."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int, /) -> Sequence[str]:
        self.asked.append(host)
        return self._answers[min(len(self.asked), len(self._answers)) - 1]


class Connector(httpcore.AsyncNetworkBackend):
    """Opens nothing; notes where a connection would have gone; the first few refuse or hang."""

    def __init__(self, *, refuse: int = 0, hang: int = 0) -> None:
        self.opened: list[str] = []
        self._refuse = refuse
        self._hang = hang

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        self.opened.append(host)
        if len(self.opened) <= self._refuse:
            raise httpcore.ConnectError
        if len(self.opened) <= self._hang:
            await asyncio.Event().wait()
        return httpcore.AsyncMockStream([])


def guarded(
    answers: Answers, connector: Connector, *, admit_loopback: bool = False
) -> GuardedNetwork:
    return GuardedNetwork(admit_loopback=admit_loopback, resolver=answers, connector=connector)
