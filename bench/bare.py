"""A worker route without product code: a token is checked, the floor's statements are run."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.product import MeasurementError
from listen_finalization.dispatch.in_process import InProcessWorker
from listen_finalization.settings import RUN_PATH

_AUDIENCE = "https://bare.invalid"
_ISSUER = "https://issuer.invalid"


class BareWorker:
    """One Starlette route, called through the transport by which the dispatcher calls its own.

    The transport is the product's on purpose: a slower one here would lower the floor.

    Each delivery is one POST with a bearer token, signed once with RS256 and verified every time.
    """

    def __init__(self, work: Callable[[str], Awaitable[None]]) -> None:
        self._work = work
        key = generate_private_key(public_exponent=65537, key_size=2048)
        self._key = key.public_key()
        claims = {"aud": _AUDIENCE, "iss": _ISSUER, "exp": int(time.time()) + 3600}
        self._token = jwt.encode(claims, key, algorithm="RS256")
        app = Starlette(routes=[Route(RUN_PATH, self._run, methods=["POST"])])
        self._worker = InProcessWorker(app)

    async def _run(self, request: Request) -> JSONResponse:
        token = request.headers["authorization"].removeprefix("Bearer ")
        jwt.decode(token, self._key, algorithms=["RS256"], audience=_AUDIENCE, issuer=_ISSUER)
        await self._work(json.loads(await request.body())["job_id"])
        return JSONResponse({"status": "completed"})

    async def deliver(self, job_id: str) -> None:
        """Post one job. Raises `MeasurementError` where the answer is not 200."""
        body = {"job_id": job_id, "dispatch_generation": 1}
        headers = {"Authorization": f"Bearer {self._token}"}
        answer = await self._worker.post(RUN_PATH, json=body, headers=headers)
        if answer.status != 200 or answer.json()["status"] != "completed":
            raise MeasurementError("the bare route refused a delivery")
