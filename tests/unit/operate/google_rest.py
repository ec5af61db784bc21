"""REST answers of Google on loopback, in their documented shapes, as a test changes them."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from jwt.algorithms import RSAAlgorithm

from listen_finalization.settings import RUN_PATH

TOKEN = "canary-token-5d20"
Answer = tuple[int, Any]


def denied(reason: str | None = None) -> Answer:
    """Return a refusal (google.rpc.Status as JSON)."""
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]
    error = {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}
    return 403, {"error": error | ({"details": details} if reason else {})}


class GoogleRest:
    """A server: `answers` by path; a path in `hanging` is answered when the server ends.

    `handler` is what the task route's path answers without and with a token, as HTML of a front
    end; `date` replaces the header of that name.
    """

    def __init__(self, key: RSAPrivateKey) -> None:
        jwk = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
        keys: Answer = (200, {"keys": [jwk | {"kid": "one", "use": "sig", "alg": "RS256"}]})
        self.answers: dict[str, Answer] = {"/certs/google": keys, "/certs/users": keys}
        self.answers["/token"] = (200, {"access_token": TOKEN, "expires_in": 3600})
        self.hanging: set[str] = set()
        self.handler = (404, 404)
        self.date: str | None = None
        self.asked: list[tuple[str, Mapping[str, list[str]], str | None]] = []
        self._ended = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handling())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, path: str, query: Mapping[str, list[str]], token: str | None) -> Answer:
        self.asked.append((path, query, token))
        if path in self.hanging:
            self._ended.wait(60)
        if path == RUN_PATH:
            return self.handler[token is not None], None
        found = self.answers.get(path + "".join(query.get("pageToken", [])))
        return found or (404, {"error": {"code": 404, "status": "NOT_FOUND"}})

    def _handling(self) -> type[BaseHTTPRequestHandler]:
        rest = self

        class Handling(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._told()

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", "0")))
                self._told()

            def _told(self) -> None:
                asked = urlsplit(self.path)
                token = self.headers.get("authorization")
                status, document = rest._answer(asked.path, parse_qs(asked.query), token)
                body = b"<html>" if document is None else json.dumps(document).encode()
                kind = "text/html" if document is None else "application/json; charset=UTF-8"
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def date_time_string(self, timestamp: float | None = None) -> str:
                return rest.date or super().date_time_string(timestamp)

            def log_message(self, *_: object) -> None:
                return

        return Handling
