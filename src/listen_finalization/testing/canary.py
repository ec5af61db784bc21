"""Planted texts and the search for them, in every form in which a text may leak."""

from __future__ import annotations

import base64
import json
import logging
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote, quote_plus

_WIDTH = 3


class Leak(NamedTuple):
    """A canary that was found: its name, the form, and the place; never the text around it."""

    canary: str
    form: str
    place: str


def canary(name: str) -> str:
    """Mint a text that occurs nowhere else; it has letters that every encoding changes."""
    return f"canary<{name}>é/{secrets.token_hex(8)}"


def forms(text: str) -> Iterator[tuple[str, str]]:
    """Yield the forms of a text that `leaks` looks for, by name.

    Base64 depends on what stands before: all three alignments are searched, cut to the part that
    does not depend on the neighbours.
    """
    data = text.encode()
    yield "plain", text
    yield "lower", text.lower()
    yield "upper", text.upper()
    yield "reversed", text[::-1]
    yield "hex", data.hex()
    yield "hex upper", data.hex().upper()
    yield "url", quote(text, safe="")
    yield "url path", quote(text)
    yield "url form", quote_plus(text)
    yield "json", json.dumps(text)[1:-1]
    yield "json twice", json.dumps(json.dumps(text))[3:-3]
    yield "repr", repr(text)[1:-1]
    yield "bytes", repr(data)[2:-1]
    for shift in range(_WIDTH):
        yield f"base64 {shift}", _inner(base64.b64encode(bytes(shift) + data), shift)
        yield f"base64url {shift}", _inner(base64.urlsafe_b64encode(bytes(shift) + data), shift)


def _inner(encoded: bytes, shift: int) -> str:
    """Drop the letters that the bytes before and after have a share in."""
    head = (0, 2, 3)[shift]
    plain = encoded.rstrip(b"=")
    return plain[head : len(plain) - 1].decode("ascii")


def leaks(canaries: Mapping[str, str], places: Mapping[str, str | bytes]) -> list[Leak]:
    """Return every canary (name to text) that occurs in a place (name to text), in any form.

    The random half of a canary of `canary` is searched on its own too, as are the letters of
    other canaries of 12 or more ASCII letters and digits.
    """
    texts = {
        place: found.decode("utf-8", "replace") if isinstance(found, bytes) else found
        for place, found in places.items()
    }
    return [
        Leak(name, form, place)
        for name, text in canaries.items()
        for form, wanted in _wanted(text)
        for place, found in texts.items()
        if wanted in found
    ]


def _wanted(text: str) -> Iterable[tuple[str, str]]:
    yield from forms(text)
    for core in re.findall(r"[A-Za-z0-9]{12,}", text):
        for form, wanted in forms(core):
            yield f"core {form}", wanted


class KeptLog(logging.Handler):
    """Keeps all that is logged at every level, with tracebacks and the records' own fields."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception as error:  # noqa: BLE001 - a line that cannot be made is a finding, too
            line = f"unformattable {type(error).__name__}"
        self.lines.append(f"{line} {record.__dict__!r}")

    @property
    def text(self) -> str:
        return "\n".join(self.lines)
