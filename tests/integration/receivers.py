"""Webhook receivers on loopback, in a thread of the test, so that they outlive every kill."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Received(NamedTuple):
    """One request as it came; the body by its hash."""

    path: str
    delivery_id: str
    key: str
    body: str


class Receiver:
    """Notes every whole request before it answers; `status` says with what."""

    def __init__(self, status: Callable[[Received], int] = lambda _: 200) -> None:
        self.received: list[Received] = []
        self.broken_off = 0
        self._lock = threading.Lock()
        self._status = status
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def url(self, path: str = "/hook") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                body = self.rfile.read(size)
                if len(body) < size:
                    receiver.broken_off += 1
                    return  # its sender was killed: no whole request ever came
                note = Received(
                    self.path,
                    self.headers["webhook-id"],
                    self.headers["Idempotency-Key"],
                    hashlib.sha256(body).hexdigest(),
                )
                with receiver._lock:
                    receiver.received.append(note)
                self.send_response(receiver._status(note))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        return Handler

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def receivers(number: int) -> Iterator[list[Receiver]]:
    made = [Receiver() for _ in range(number)]
    for one in made:
        one.start()
    try:
        yield made
    finally:
        for one in made:
            one.stop()
