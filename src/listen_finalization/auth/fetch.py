"""One bounded GET of a key document."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus

import httpx

MAX_DOCUMENT = 256 * 1024
"""Bytes of a key document; Google's and Firebase's are below 10 KiB."""

MIN_AGE, DEFAULT_AGE, MAX_AGE = 60.0, 300.0, 86_400.0
"""Seconds for which a document is fresh: at least, where the server is silent, at most."""

_MAX_AGE = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?(\d{1,10})", re.IGNORECASE)
_NOT_STORED = re.compile(r"\bno-(?:store|cache)\b", re.IGNORECASE)


class Fetch(StrEnum):
    """How the last attempt to fetch the keys ended."""

    OK = "ok"
    UNREACHABLE = "unreachable"
    BAD_STATUS = "bad_status"
    TOO_LARGE = "too_large"
    BAD_DOCUMENT = "bad_document"


@dataclass(frozen=True, slots=True)
class Document:
    """The body of a 200 answer and the seconds for which it is fresh."""

    body: bytes = field(repr=False)
    fresh_for: float


async def fetch(client: httpx.AsyncClient, url: str, *, seconds: float) -> Document | Fetch:
    """Get `url` within `seconds` in all; return the document or why there is none.

    Redirects are not followed, and a compressed body is not unpacked, so that the bound on its
    size is the bound on memory.
    """
    try:
        async with asyncio.timeout(seconds):
            return await _get(client, url)
    except (httpx.HTTPError, TimeoutError, OSError):
        return Fetch.UNREACHABLE


async def _get(client: httpx.AsyncClient, url: str) -> Document | Fetch:
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    request = client.build_request("GET", url, headers=headers, timeout=None)
    answer = await client.send(request, stream=True, auth=None, follow_redirects=False)
    try:
        if answer.status_code != HTTPStatus.OK:
            return Fetch.BAD_STATUS
        body = await _bounded(answer)
        return Fetch.TOO_LARGE if body is None else Document(body, fresh_for(answer.headers))
    finally:
        await answer.aclose()


async def _bounded(answer: httpx.Response) -> bytes | None:
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) > MAX_DOCUMENT:
            return None
    return bytes(body)


def fresh_for(headers: httpx.Headers) -> float:
    """Return max-age less the Age of the answer (RFC 9111, section 4.2), within the bounds."""
    control = headers.get("cache-control", "")
    if _NOT_STORED.search(control):
        return MIN_AGE
    found = _MAX_AGE.search(control)
    age = headers.get("age", "").strip()
    spent = int(age) if re.fullmatch(r"[0-9]{1,10}", age) else 0
    seconds = float(found[1]) - spent if found else DEFAULT_AGE
    return min(max(seconds, MIN_AGE), MAX_AGE)
