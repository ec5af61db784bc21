"""Tells which calls block the thread in which an event loop is running a callback."""

from __future__ import annotations

import asyncio
import functools
import select
import socket
import ssl
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, Self

import pytest
from grpc import _channel  # type: ignore[import-untyped]

_SOCKET = (
    *("accept", "connect", "connect_ex", "recv", "recv_into", "recvfrom", "recvmsg"),
    *("send", "sendall", "sendmsg", "sendto"),
)
_TLS = ("do_handshake", "read", "write")
_ALWAYS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (time, ("sleep",)),
    (select, ("select",)),
    (socket, ("create_connection", "getaddrinfo", "gethostbyname")),
    (threading.Thread, ("join",)),
    (subprocess.Popen, ("wait", "communicate")),
    (_channel._UnaryUnaryMultiCallable, ("_blocking",)),
    (_channel._UnaryStreamMultiCallable, ("__call__",)),
    (_channel._SingleThreadedUnaryStreamMultiCallable, ("__call__",)),
    (_channel._StreamUnaryMultiCallable, ("_blocking",)),
    (_channel._StreamStreamMultiCallable, ("__call__",)),
)
"""What waits for a lock, a thread, a process, a name or the blocking kind of gRPC: none of it is
anybody's on an event loop. The loop's own waiting is `epoll`, which is not among them."""

_STARTS = frozenset(
    {threading.Thread.start.__code__, ThreadPoolExecutor._adjust_thread_count.__code__}
)
"""A thread that is started is waited for until it runs: asyncio's own threads, and no provider."""


class BlockingCalls:
    """Notes them while it is entered, with where they were made; every call still goes on.

    A socket that does not block (its timeout is 0, as asyncio's is) is not noted.
    """

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> Self:
        for owner, names in _ALWAYS:
            for name in names:
                self._watch(owner, name, lambda _: True)
        self._watch(threading.Condition, "wait", lambda _: not _starts_a_thread())
        for name in _SOCKET:
            self._watch(socket.socket, name, _blocks)
        for name in _TLS:
            self._watch(ssl.SSLSocket, name, _blocks)
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()

    def _watch(self, owner: Any, name: str, blocks: Callable[[tuple[Any, ...]], bool]) -> None:
        call = getattr(owner, name)

        @functools.wraps(call)
        def watched(*arguments: Any, **options: Any) -> Any:
            if asyncio._get_running_loop() is not None and blocks(arguments):
                place = traceback.format_list(traceback.extract_stack(limit=8)[:-1])
                self.seen.append(f"{owner.__name__}.{name}\n{''.join(place)}")
            return call(*arguments, **options)

        self._patch.setattr(owner, name, watched)


def _blocks(arguments: tuple[Any, ...]) -> bool:
    return bool(arguments[0].gettimeout() != 0)


def _starts_a_thread() -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code in _STARTS:
            return True
        frame = frame.f_back
    return False
