"""A key server on loopback whose answer each test sets, and which counts what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Answer:
    """What the server says to every request, until it is given another."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, document: object, *, max_age: int = 3600) -> Answer:
        """Return a document that is fresh for `max_age` seconds, as Google publishes its keys."""
        headers = {"Cache-Control": f"public, max-age={max_age}, must-revalidate"}
        return cls(json.dumps(document).encode(), 200, headers)


class KeyServer:
    """Real HTTP, in a thread; `stop` ends it. At first it answers 404.

    `fetches` counts the requests. With `hold` cleared a request is taken (`arrived`) and not
    answered until it is set again.
    """

    def __init__(self) -> None:
        self.answer = Answer(status=404)
        self.fetches = 0
        self.arrived = threading.Event()
        self.hold = threading.Event()
        self.hold.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/keys"

    def stop(self) -> None:
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _respond(self, handler: BaseHTTPRequestHandler) -> None:
        self.fetches += 1
        self.arrived.set()
        self.hold.wait()
        answer = self.answer
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(answer.body)))
        handler.end_headers()
        handler.wfile.write(answer.body)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        respond: Callable[[BaseHTTPRequestHandler], None] = self._respond

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                try:
                    respond(self)
                except OSError:
                    self.close_connection = True

            def log_message(self, *args: object) -> None:
                """Keep the test output clean."""

        return Handler
