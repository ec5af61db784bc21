"""A worker route without product code: a token is checked, the floor's statements are run."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.product import MeasurementError
from listen_finalization.settings import RUN_PATH

_AUDIENCE = "https://bare.invalid"
_ISSUER = "https://issuer.invalid"


class BareWorker:
    """One Starlette route behind httpx's ASGI transport, as the product's dispatcher calls its own.

    Each delivery is one POST with a bearer token, signed once with RS256 and verified every time.
    """

    def __init__(self, work: Callable[[str], Awaitable[None]]) -> None:
        self._work = work
        key = generate_private_key(public_exponent=65537, key_size=2048)
        self._key = key.public_key()
        claims = {"aud": _AUDIENCE, "iss": _ISSUER, "exp": int(time.time()) + 3600}
        self._token = jwt.encode(claims, key, algorithm="RS256")
        app = Starlette(routes=[Route(RUN_PATH, self._run, methods=["POST"])])
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="https://bare.invalid"
        )

    async def _run(self, request: Request) -> JSONResponse:
        token = request.headers["authorization"].removeprefix("Bearer ")
        jwt.decode(token, self._key, algorithms=["RS256"], audience=_AUDIENCE, issuer=_ISSUER)
        await self._work(json.loads(await request.body())["job_id"])
        return JSONResponse({"status": "completed"})

    async def deliver(self, job_id: str) -> None:
        """Post one job. Raises `MeasurementError` where the answer is not 200."""
        body = json.dumps({"job_id": job_id, "dispatch_generation": 1})
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        answer = await self._client.post(RUN_PATH, content=body, headers=headers)
        if answer.status_code != 200 or answer.json()["status"] != "completed":
            raise MeasurementError("the bare route refused a delivery")

    async def close(self) -> None:
        await self._client.aclose()
