"""Google's REST APIs, read alone, under one account that is found once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import httpx

from listen_finalization.operate.facts import Blind, Look, Missing, Unseen

T = TypeVar("T")
Headers = Mapping[str, str]

ACCOUNT_LIMIT = 10.0
"""Seconds for one exchange with whoever gives tokens: a thread cannot be called back."""

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the APIs are; tests have others."""

    iam: str = "https://iam.googleapis.com"
    run: str = "https://run.googleapis.com"
    firestore: str = "https://firestore.googleapis.com"
    projects: str = "https://cloudresourcemanager.googleapis.com"


async def default_account() -> Headers | Unseen:
    """Return the headers of the application default credentials, fresh.

    Looking for them reads files and may ask the metadata server, so a thread does it.
    """
    try:
        return await asyncio.to_thread(_fresh_headers, ACCOUNT_LIMIT)
    except ModuleNotFoundError:
        return Unseen(Blind.EXTRA_MISSING)


def _fresh_headers(seconds: float) -> Headers | Unseen:
    import google.auth
    from google.auth.exceptions import GoogleAuthError
    from google.auth.transport.requests import Request

    headers: dict[str, str] = {}
    try:
        credentials, _ = google.auth.default(scopes=SCOPES)
        credentials.refresh(partial(Request(), timeout=seconds))  # type: ignore[no-untyped-call]
        credentials.apply(headers)  # type: ignore[no-untyped-call]
    except GoogleAuthError:
        return Unseen(Blind.NO_CREDENTIALS)
    return headers


class Google:
    """Asks; an answer is a document, or why there is none. Belongs to one event loop.

    The account is looked for by whoever asks first, and all others wait for the same search. The
    client stays the caller's.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        account: Callable[[], Awaitable[Headers | Unseen]],
        endpoints: Endpoints,
    ) -> None:
        self.at = endpoints
        self._client = client
        self._account = account
        self._found: asyncio.Future[Headers | Unseen] | None = None

    async def get(self, url: str, **parameters: str) -> Look[Mapping[str, Any]]:
        """Ask for a resource."""
        return await self._ask("GET", url, parameters, None)

    async def post(
        self, url: str, body: Mapping[str, Any], **parameters: str
    ) -> Look[Mapping[str, Any]]:
        """Ask with a body: of the methods that only read, getIamPolicy is asked so."""
        return await self._ask("POST", url, parameters, body)

    async def aclose(self) -> None:
        """Give up a search for the account that still runs; may be called again."""
        if self._found is not None and not self._found.done():
            self._found.cancel()
            await asyncio.wait([self._found])

    async def _ask(
        self, method: str, url: str, parameters: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> Look[Mapping[str, Any]]:
        headers = await self._headers()
        if isinstance(headers, Unseen):
            return headers
        try:
            answer = await self._client.request(
                method, url, params=parameters, json=body, headers=dict(headers), timeout=None
            )
            return _read(answer)
        except httpx.HTTPError:
            return Unseen(Blind.UNREACHABLE)

    async def _headers(self) -> Headers | Unseen:
        if self._found is None:
            self._found = asyncio.ensure_future(self._account())
        # A probe whose time is up does not take the others' account with it.
        return await asyncio.shield(self._found)


def _read(answer: httpx.Response) -> Look[Mapping[str, Any]]:
    if answer.status_code == httpx.codes.NOT_FOUND:
        return Missing()
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        return Unseen(Blind.NO_CREDENTIALS)
    try:
        document = answer.json()
    except ValueError:
        return Unseen(Blind.ODD_ANSWER)
    if answer.status_code == httpx.codes.FORBIDDEN:
        return Unseen(Blind.API_DISABLED if _disabled(document) else Blind.FORBIDDEN)
    whole = answer.status_code == httpx.codes.OK and isinstance(document, dict)
    return document if whole else Unseen(Blind.ODD_ANSWER)


def _disabled(refusal: Any) -> bool:
    """Whether a refusal is that of an API that the project has not enabled (google.rpc.ErrorInfo).

    Raises nothing for a document of any other shape.
    """
    error = refusal.get("error") if isinstance(refusal, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    found = details if isinstance(details, list) else []
    return any(isinstance(one, dict) and one.get("reason") == "SERVICE_DISABLED" for one in found)


def parsed(answer: Look[Mapping[str, Any]], parse: Callable[[Mapping[str, Any]], T]) -> Look[T]:
    """Return what `parse` makes of a document; one that it cannot read is an odd answer."""
    if isinstance(answer, Missing | Unseen):
        return answer
    try:
        return parse(answer)
    except (KeyError, TypeError, ValueError, AttributeError):
        return Unseen(Blind.ODD_ANSWER)
